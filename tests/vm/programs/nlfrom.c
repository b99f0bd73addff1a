// SPDX-License-Identifier: Apache-2.0
/*
 * Says every command to the kernel module from places where nobody may: without CAP_NET_ADMIN, from
 * user, network and PID namespaces that are not the initial ones, by sockets that came from
 * elsewhere. Each must be refused with a message, nothing may have changed, and no event may be
 * heard. The same requests from where they are allowed show that it was the place.
 *
 *	nlfrom NODE HOOKED OTHER	NODE: a device node to ask hooks for; HOOKED, OTHER: two
 *					that are hooked
 *
 * Prints a line or two for each place.
 *
 *	nlfrom full nobody|root		asks for a dump with a receive buffer that is full, prints
 *					"asked", and never reads
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "common/cleanup.h"
#include "tests/vm/programs/nl.h"

static struct nl nl; /* the family's numbers; a place has a socket of its own */
static struct gs_klink *watching;
static int node;
static uint32_t hooked, other;
static bool guarded; /* the kernel asks for CAP_NET_ADMIN to listen */

/* ---- The requests: all that there are, each of which would do something. */

static const struct {
	const char *name;
	uint8_t cmd;
	int code; /* what it gives where it is allowed */
} requests[] = {
	{ "STATUS", GS_CMD_STATUS, 0 },		 { "HEARTBEAT", GS_CMD_HEARTBEAT, 0 },
	{ "HOOK_ADD", GS_CMD_HOOK_ADD, 0 },	 { "HOLDING_SET", GS_CMD_HOLDING_SET, 0 },
	{ "WATCH_SET", GS_CMD_WATCH_SET, 0 },	 { "LEND", GS_CMD_LEND, EAGAIN },
	{ "SAMPLE", GS_CMD_SAMPLE, EOPNOTSUPP }, { "WITHDRAW", GS_CMD_WITHDRAW, 0 },
	{ "RELEASE", GS_CMD_RELEASE, ESTALE },	 { "DUMP", GS_CMD_DUMP, 0 },
	{ "WATCH_DEL", GS_CMD_WATCH_DEL, 0 },	 { "HOLDING_DEL", GS_CMD_HOLDING_DEL, 0 },
	{ "HOOK_DEL", GS_CMD_HOOK_DEL, 0 },
};

static void make(struct nl_msg *msg, uint8_t cmd)
{
	static const char *const holdings[] = { "there" };
	struct gs_kwho who = { .cgroup_id = 0x7654321 };

	nl_start(msg, nl.family, cmd);
	switch (cmd) {
	case GS_CMD_HOOK_ADD:
		nl_put_u32(msg, GS_A_FD, (uint32_t)node);
		break;
	case GS_CMD_HOOK_DEL:
		nl_put_u32(msg, GS_A_DEV, other);
		break;
	case GS_CMD_HOLDING_SET:
		nl_put_str(msg, GS_A_NAME, "new");
		nl_put_u32(msg, GS_A_DEVS, hooked);
		break;
	case GS_CMD_WATCH_SET:
		nl_put_str(msg, GS_A_NAME, "new");
		nl_put_u8(msg, GS_A_ROLE, GS_MEMBER);
		nl_put_u64(msg, GS_A_CGROUP_ID, who.cgroup_id);
		nl_put_names(msg, holdings, 1);
		break;
	case GS_CMD_WATCH_DEL:
	case GS_CMD_HOLDING_DEL:
	case GS_CMD_WITHDRAW:
		nl_put_str(msg, GS_A_NAME, "there");
		break;
	case GS_CMD_LEND:
	case GS_CMD_SAMPLE:
	case GS_CMD_RELEASE:
		nl_put_str(msg, GS_A_NAME, "there");
		nl_put_u64(msg, GS_A_SEQ, 1);
		break;
	case GS_CMD_DUMP:
		nl_hdr(msg)->nlmsg_flags |= NLM_F_DUMP;
		break;
	default:
		break;
	}
}

/* Says them all, from here, by the socket; how many were not refused as they should is returned. */
static int say_all(int fd, bool allowed, bool capable, const char *place)
{
	struct nl from = { .fd = fd, .family = nl.family };
	struct nl_said said;
	struct nl_msg msg;
	int bad = 0;

	for (size_t i = 0; i < GS_ARRAY_SIZE(requests); i++) {
		int want = allowed ? requests[i].code : EPERM, code;

		make(&msg, requests[i].cmd);
		code = nl_ask(&from, &msg, &said);
		/* Up to 6.1 what may not even begin a dump is refused before there are words. */
		if (code == want &&
		    (code == 0 || *said.text || (!capable && requests[i].cmd == GS_CMD_DUMP)))
			continue;
		printf("# %s: %s: %s, wanted %s, with a message: \"%s\"\n", place, requests[i].name,
		       code ? strerrorname_np(said.code) : "taken",
		       want ? strerrorname_np(want) : "taken", said.text);
		bad++;
	}
	return bad;
}

/* Joins the group in both ways: errno, or 0. */
static int join(int fd)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(address);
	int group = (int)nl.group, by_option, by_bind = EPERM;

	by_option = setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0 ?
			    errno :
			    0;
	if (group <= 32 && getsockname(fd, (void *)&address, &len) == 0) {
		address.nl_groups = 1U << (group - 1);
		by_bind = bind(fd, (void *)&address, sizeof(address)) < 0 ? errno : 0;
	}
	return by_option && by_bind ? by_option : 0;
}

/* ---- The places. Each is a process of its own; it comes back with a socket to speak by, or -1. */

/* A socket that was opened by another process than the one that uses it. */
static int passed = -1;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		nl_die("%s: %s", path, strerror(errno));
	(void)close(fd);
}

static void need(int r, const char *what)
{
	if (r < 0)
		nl_die("%s: %s", what, strerror(errno));
}

static void be_nobody(void)
{
	need(setgroups(0, NULL), "setgroups");
	need(setresgid(65534, 65534, 65534), "setresgid");
	need(setresuid(65534, 65534, 65534), "setresuid");
}

static void drop_admin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	need((int)syscall(SYS_capget, &head, data), "capget");
	data[0].effective &= ~(1U << CAP_NET_ADMIN);
	data[0].permitted &= ~(1U << CAP_NET_ADMIN);
	need(prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0), "drop from the bounding set");
	need((int)syscall(SYS_capset, &head, data), "capset");
}

static void enter_user_ns(int more)
{
	need(unshare(CLONE_NEWUSER | more), "a user namespace");
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 0 1");
	write_file("/proc/self/gid_map", "0 0 1");
}

/* Goes on as the first process of a PID namespace. */
static void enter_pid_ns(void)
{
	int status = 0;
	pid_t pid;

	need(unshare(CLONE_NEWPID), "a PID namespace");
	pid = fork();
	need(pid, "fork");
	if (pid == 0)
		return;
	(void)waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

static int as_root(void)
{
	return nl_socket();
}

static int as_nobody(void)
{
	be_nobody();
	return nl_socket();
}

static int as_root_without_it(void)
{
	drop_admin();
	return nl_socket();
}

static int in_user_ns(void)
{
	enter_user_ns(0);
	return nl_socket();
}

static int in_user_and_net_ns(void)
{
	enter_user_ns(CLONE_NEWNET);
	return nl_socket();
}

static int in_net_ns(void)
{
	need(unshare(CLONE_NEWNET), "a network namespace");
	return nl_socket();
}

static int in_pid_ns(void)
{
	enter_pid_ns();
	return nl_socket();
}

static int in_all_but_user(void)
{
	need(unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC), "namespaces");
	enter_pid_ns();
	return nl_socket();
}

static int passed_to_nobody(void)
{
	be_nobody();
	return passed;
}

static int passed_to_root_without_it(void)
{
	drop_admin();
	return passed;
}

static int passed_to_user_ns(void)
{
	enter_user_ns(0);
	return passed;
}

static int passed_to_net_ns(void)
{
	need(unshare(CLONE_NEWNET), "a network namespace");
	return passed;
}

static int passed_to_pid_ns(void)
{
	enter_pid_ns();
	return passed;
}

static int passed_to_root(void)
{
	return passed;
}

enum listen { REFUSED, DEAF, HEARS };

static const struct place {
	const char *name;
	int (*go)(void);
	int (*opener)(void); /* who opens the socket that is passed */
	bool allowed;
	bool capable; /* it, and who opened the socket, have CAP_NET_ADMIN */
	enum listen listen; /* DEAF: it may join, in a network namespace where nothing is sent */
} places[] = {
	{ "an unprivileged user", as_nobody, NULL, false, false, REFUSED },
	{ "root without CAP_NET_ADMIN", as_root_without_it, NULL, false, false, REFUSED },
	{ "root in a user namespace", in_user_ns, NULL, false, false, REFUSED },
	{ "root in a user and network namespace", in_user_and_net_ns, NULL, false, false, DEAF },
	{ "root in a network namespace", in_net_ns, NULL, false, true, DEAF },
	{ "root in a PID namespace", in_pid_ns, NULL, false, true, HEARS },
	{ "root in a privileged container", in_all_but_user, NULL, false, true, DEAF },
	{ "an unprivileged user with root's socket", passed_to_nobody, as_root, false, false,
	  REFUSED },
	{ "root without CAP_NET_ADMIN with root's socket", passed_to_root_without_it, as_root,
	  false, false, REFUSED },
	{ "root in a user namespace with root's socket", passed_to_user_ns, as_root, false, false,
	  REFUSED },
	{ "root in a network namespace with root's socket", passed_to_net_ns, as_root, false, true,
	  HEARS },
	{ "root in a PID namespace with root's socket", passed_to_pid_ns, as_root, false, true,
	  HEARS },
	{ "root with a socket out of a network namespace", passed_to_root, in_net_ns, false, true,
	  DEAF },
	{ "root with a socket out of a user and network namespace", passed_to_root,
	  in_user_and_net_ns, false, false, DEAF },
	{ "root", as_root, NULL, true, true, HEARS },
};

/* ---- Passing a socket. */

static void send_fd(int by, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	need((int)sendmsg(by, &msg, 0), "pass a socket");
}

static int receive_fd(int by)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	int fd;

	if (recvmsg(by, &msg, 0) <= 0 || !(cmsg = CMSG_FIRSTHDR(&msg)))
		nl_die("no socket was passed");
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

/* Has a process at another place open a socket, which stays alive until the program's end. */
static int open_elsewhere(int (*opener)(void))
{
	int pair[2], fd;
	pid_t pid;

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	pid = fork();
	need(pid, "fork");
	if (pid == 0) {
		(void)close(pair[0]);
		fd = opener();
		need(fd, "a socket elsewhere");
		send_fd(pair[1], fd);
		_exit(0);
	}
	(void)close(pair[1]);
	fd = receive_fd(pair[0]);
	(void)close(pair[0]);
	(void)waitpid(pid, NULL, 0);
	return fd;
}

/* ---- One place after the other. */

/* A small change, so that an event is sent. */
static void make_event(void)
{
	const struct gs_kholding_set set = { .name = "event",
					     .devs = &hooked,
					     .n_devs = 1,
					     .lend_after_ms = GS_KTIME_NONE,
					     .hold_max_ms = GS_KTIME_NONE,
					     .settle_ms = GS_KTIME_NONE };
	struct gs_err err;

	if (gs_klink_holding_set(watching, &set, &err) < 0 ||
	    gs_klink_holding_del(watching, "event", &err) < 0)
		nl_die("%s", err.msg);
}

/* In the child: joins, says so, waits for the parent's event, tells whether it was heard. */
static int listen_here(const struct place *place, int fd, int go, int ready)
{
	struct timeval soon = { .tv_usec = 200000 };
	int code = join(fd);
	char byte = 0, buf[4096];
	bool heard;

	need((int)write(ready, &byte, 1), "tell");
	need((int)read(go, &byte, 1), "wait");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	heard = recv(fd, buf, sizeof(buf), 0) > 0;
	if (place->listen == REFUSED && guarded && (code != EPERM || heard))
		printf("# joining the group gives %s\n", code ? strerrorname_np(code) : "success");
	else if (place->listen == DEAF && heard)
		puts("# an event was heard in another network namespace");
	else if (place->listen == HEARS && !heard)
		puts("# no event was heard, so this test can't tell");
	else
		return 0;
	return 1;
}

static int visit(const struct place *place, int go, int ready)
{
	int fd = place->go(), bad;

	if (fd < 0) {
		printf("# no socket: %s\n", strerror(errno));
		return 3;
	}
	bad = say_all(fd, place->allowed, place->capable, place->name) ? 1 : 0;
	return bad | listen_here(place, fd, go, ready) << 1;
}

static void try_place(const struct place *place)
{
	int go[2], ready[2], status = 0;
	char *before = nl_text(watching), *after, name[128], byte = 0;
	pid_t pid;

	passed = place->opener ? open_elsewhere(place->opener) : -1;
	need(pipe2(go, O_CLOEXEC), "pipe");
	need(pipe2(ready, O_CLOEXEC), "pipe");
	(void)fflush(stdout);
	pid = fork();
	need(pid, "fork");
	if (pid == 0) {
		int bad = visit(place, go[0], ready[1]);

		(void)fflush(stdout);
		_exit(bad);
	}
	(void)close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	after = nl_text(watching);
	make_event();
	(void)!write(go[1], &byte, 1);
	(void)waitpid(pid, &status, 0);
	(void)close(ready[0]);
	(void)close(go[0]);
	(void)close(go[1]);
	if (passed >= 0)
		(void)close(passed);

	(void)snprintf(name, sizeof(name), "%s: %s", place->name,
		       place->allowed ? "taken" : "refused, with a message");
	nl_result(WIFEXITED(status) && !(WEXITSTATUS(status) & 5), name, "status %x", status);
	(void)snprintf(name, sizeof(name), "%s: %s", place->name,
		       place->listen == HEARS ? "hears events, as the kernel lets it" :
		       place->listen == DEAF  ? "hears no event" :
		       guarded		      ? "may not listen" :
						"may listen, as this kernel does not ask");
	nl_result(WIFEXITED(status) && !(WEXITSTATUS(status) & 6), name, "status %x", status);
	if (!place->allowed) {
		(void)snprintf(name, sizeof(name), "%s: nothing changed", place->name);
		nl_result(strcmp(before, after) == 0, name, "was:\n%s\nis:\n%s", before, after);
	}
	free(before);
	free(after);
}

/* The kernel keeps such a dump until there is room. */
static void __attribute__((noreturn)) ask_when_full(bool nobody)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd, size = 1;
	struct nl_msg msg;

	nl_family(&nl);
	fd = nobody ? as_nobody() : as_root();
	need(fd, "a socket");
	need(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), "a small buffer");
	for (int i = 0; i <= 100; i++) {
		make(&msg, i < 100 ? GS_CMD_STATUS : GS_CMD_DUMP);
		nl_hdr(&msg)->nlmsg_len = (uint32_t)msg.len;
		(void)sendto(fd, msg.buf, msg.len, 0, (void *)&kernel, sizeof(kernel));
	}
	printf("asked\n");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

static void prepare(void)
{
	static const char *const holdings[] = { "there" };
	const struct gs_kholding_set holding = { .name = "there",
						 .devs = &hooked,
						 .n_devs = 1,
						 .lend_after_ms = GS_KTIME_NONE,
						 .hold_max_ms = GS_KTIME_NONE,
						 .settle_ms = GS_KTIME_NONE };
	const struct gs_kwatch_set watch = { .name = "there",
					     .role = GS_MEMBER,
					     .who = { .cgroup_id = 0x7654320 },
					     .holdings = holdings,
					     .n_holdings = 1 };
	struct gs_err err;

	if (gs_klink_holding_set(watching, &holding, &err) < 0 ||
	    gs_klink_watch_set(watching, &watch, &err) < 0)
		nl_die("%s", err.msg);
}

int main(int argc, char **argv)
{
	struct gs_kstatus status;
	struct gs_err err;
	struct stat st;

	if (argc == 3 && strcmp(argv[1], "full") == 0)
		ask_when_full(strcmp(argv[2], "nobody") == 0);
	if (argc != 4 || stat(argv[2], &st) < 0)
		nl_die("nlfrom NODE HOOKED OTHER");
	hooked = gs_kdev_of(st.st_rdev);
	need(stat(argv[3], &st), argv[3]);
	other = gs_kdev_of(st.st_rdev);
	node = open(argv[1], O_RDWR);
	nl_family(&nl);
	if (node < 0 || gs_klink_open(&watching, &err) < 0 ||
	    gs_klink_status(watching, &status, &err) < 0)
		nl_die("%s: %s", argv[1], node < 0 ? strerror(errno) : err.msg);
	guarded = status.features & GS_F_MCAST_CAP;
	prepare();
	for (size_t i = 0; i < GS_ARRAY_SIZE(places); i++)
		try_place(&places[i]);
	gs_klink_close(watching);
	return nl_failures != 0;
}
