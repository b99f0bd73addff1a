// SPDX-License-Identifier: Apache-2.0
/*
 * Lets allocations fail inside one system call: the first, then the second, and so on until the
 * call makes fewer than that (/proc/thread-self/fail-nth). After each the module must keep what it
 * kept before, or all of what was asked for, as the call said; and the same call must work when
 * nothing fails.
 *
 *	faultn load MODULE.ko [PARAMETER]	loading a module
 *	faultn requests NODE		every request that there is; NODE: not hooked yet
 *	faultn hook NODE		hooking a driver and letting it go
 *	faultn dump			reading dumps
 *	faultn beat			heartbeats; nodes are hooked
 *	faultn listen			opening a listener
 *	faultn open NODE		an open by whoever calls this: a borrower in a container
 *
 * Prints a line for each. Needs a kernel with CONFIG_FAILSLAB and CONFIG_FAIL_PAGE_ALLOC, set up to
 * let sleeping allocations fail.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "common/proc.h"
#include "tests/vm/programs/nl.h"

/* ---- Letting the n-th allocation fail. */

static int control = -1;

static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(control, text, (size_t)len, 0) != len)
		nl_die("fail-nth: %s", strerror(errno));
}

/* Did it fire? errno stays. */
static bool disarm(void)
{
	char text[16] = "";
	int saved = errno;
	ssize_t len = pread(control, text, sizeof(text) - 1, 0);

	if (len <= 0)
		nl_die("fail-nth: %s", strerror(errno));
	arm(0);
	errno = saved;
	return strtoul(text, NULL, 10) == 0;
}

static void open_control(void)
{
	control = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (control < 0)
		nl_die("/proc/thread-self/fail-nth: %s", strerror(errno));
}

/* ---- What came of one thing that was tried often. */

struct tally {
	const char *name;
	unsigned int fired, failed, good;
	struct gs_buf wrong;
};

static void __attribute__((format(printf, 2, 3))) complain(struct tally *t, const char *format, ...)
{
	char line[400];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (t->wrong.len < 2000)
		gs_buf_addf(&t->wrong, "%s%s", t->wrong.len ? "\n# " : "", line);
}

static void end_tally(struct tally *t)
{
	char name[160];

	printf("# %s: %u allocations failed; the call failed %u times, went well %u times\n",
	       t->name, t->fired, t->failed, t->good);
	(void)snprintf(name, sizeof(name), "%s: each allocation that fails is clean", t->name);
	nl_result(t->wrong.len == 0 && t->fired > 0 && t->good > 0, name, "%s",
		  t->wrong.len ? t->wrong.data : "nothing was tried");
	gs_buf_free(&t->wrong);
}

static bool no_memory(int code)
{
	return code == ENOMEM || code == ENOBUFS;
}

/* ---- Requests. */

static struct nl nl;
static struct gs_klink *watching;
static struct gs_err err;
static uint32_t dev;
static uint64_t beat;

/* What the module keeps, without what changes by itself: numbers of events, states of holdings. */
static char *kept(void)
{
	char *text = nl_text(watching), *at = strchr(text, '\n') + 1;

	(void)memmove(text, at, strlen(at) + 1);
	for (at = text; (at = strstr(at, " state="));) {
		const char *rest = strstr(at, " files=");

		(void)memmove(at, rest, strlen(rest) + 1);
	}
	return text;
}

static void stay_agent(void)
{
	uint64_t now = gs_boottime_ms();

	if (now - beat < 500)
		return;
	beat = now;
	if (gs_klink_heartbeat(watching, &err) < 0)
		nl_die("%s", err.msg);
}

/* A fresh socket: the last one may have the rest of an answer in it. */
static void renew(void)
{
	(void)close(nl.fd);
	nl.fd = nl_socket();
	if (nl.fd < 0)
		nl_die("a socket: %s", strerror(errno));
}

/* The errno that the request gave; -1 where the answer itself was lost. */
static int ask_armed(struct nl_msg *msg, unsigned int n, bool *ret_fired)
{
	static char buf[NL_MAX] __attribute__((aligned(4)));
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nl_said said = { 0 };
	ssize_t r;

	nl_hdr(msg)->nlmsg_seq = ++nl.seq;
	nl_hdr(msg)->nlmsg_len = (uint32_t)msg->len;
	arm(n);
	r = sendto(nl.fd, msg->buf, msg->len, 0, (void *)&kernel, sizeof(kernel));
	*ret_fired = disarm();
	if (r < 0)
		return errno;
	while ((r = recv(nl.fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		struct nlmsghdr *nlh = (void *)buf;

		for (int rest = (int)r; NLMSG_OK(nlh, (unsigned int)rest);
		     nlh = NLMSG_NEXT(nlh, rest))
			if (nl_last(nlh, &said))
				return said.code;
	}
	return -1;
}

static void plainly(struct nl_msg *msg, const char *what)
{
	struct nl_said said;

	if (nl_ask(&nl, msg, &said))
		nl_die("%s: %s %s", what, strerrorname_np(said.code), said.text);
}

/*
 * @request, and @undo (NULL: there is nothing to undo) between tries. Nothing may be half made:
 * what is kept is either what was before, or what is after it went well.
 */
static void try_request(const char *name, struct nl_msg *request, struct nl_msg *undo)
{
	struct tally t = { .name = name };
	cleanup_free char *before = kept(), *after = NULL;

	plainly(request, name);
	after = kept();
	if (undo)
		plainly(undo, "undo");
	for (unsigned int n = 1, idle = 0; idle < 2; n++) {
		cleanup_free char *now = NULL;
		bool fired, done;
		int code;

		stay_agent();
		code = ask_armed(request, n, &fired);
		t.fired += fired;
		idle = fired ? 0 : idle + 1;
		t.failed += code > 0;
		t.good += code == 0;
		if (code > 0 && !no_memory(code))
			complain(&t, "allocation %u: %s", n, strerrorname_np(code));
		if (code != 0)
			renew();
		now = kept();
		done = strcmp(now, after) == 0;
		if (code == 0 && !done)
			complain(&t, "allocation %u: went well, but left\n%s", n, now);
		else if (!done && strcmp(now, before) != 0)
			complain(&t, "allocation %u: failed (%d) and left\n%s", n, code, now);
		else if (code > 0 && strcmp(now, before) != 0)
			complain(&t, "allocation %u: said %s, but was done", n,
				 strerrorname_np(code));
		if (strcmp(now, before) != 0 && undo)
			plainly(undo, "undo");
	}
	end_tally(&t);
}

static void by_name(struct nl_msg *msg, uint8_t cmd, const char *name)
{
	nl_start(msg, nl.family, cmd);
	nl_put_str(msg, GS_A_NAME, name);
}

static void holding(struct nl_msg *msg, const char *name, uint32_t lend_after)
{
	by_name(msg, GS_CMD_HOLDING_SET, name);
	nl_put_u32(msg, GS_A_DEVS, dev);
	nl_put_u32(msg, GS_A_LEND_AFTER_MS, lend_after);
	nl_put_u32(msg, GS_A_HOLD_MAX_MS, 600000);
}

static void watch(struct nl_msg *msg, const char *name, uint8_t role, uint64_t cgroup,
		  const char *const *holdings, size_t n)
{
	by_name(msg, GS_CMD_WATCH_SET, name);
	nl_put_u8(msg, GS_A_ROLE, role);
	nl_put_u64(msg, GS_A_CGROUP_ID, cgroup);
	if (n)
		nl_put_names(msg, holdings, n);
}

static void hook(struct nl_msg *msg, int fd, const char *driver)
{
	static const uint32_t passive[] = { 1, 2 };

	nl_start(msg, nl.family, GS_CMD_HOOK_ADD);
	nl_put_u32(msg, GS_A_FD, (uint32_t)fd);
	nl_put_str(msg, GS_A_DRIVER, driver);
	nl_put(msg, GS_A_PASSIVE, passive, sizeof(passive));
}

/* Waits until the holding "h" is idle and lends it. */
static void lend(void)
{
	for (int tries = 0; tries < 600; tries++) {
		cleanup_kstate struct gs_kstate state = { 0 };
		const struct gs_kholding *h;
		struct timespec t = { .tv_nsec = 50000000 };

		stay_agent();
		if (gs_klink_dump(watching, &state, &err) < 0)
			nl_die("%s", err.msg);
		h = gs_kstate_holding(&state, "h");
		if (h && gs_klink_lend(watching, "h", h->seq, &err) == 0)
			return;
		(void)nanosleep(&t, NULL);
	}
	nl_die("not lent: %s", err.msg);
}

static void requests(const char *path)
{
	static const char *const both[] = { "h", "new" }, *const one[] = { "h" };
	struct nl_msg request, undo;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		nl_die("%s: %s", path, strerror(errno));
	dev = gs_kdev_of(st.st_rdev);
	nl_start(&request, nl.family, GS_CMD_STATUS);
	try_request("STATUS", &request, NULL);
	hook(&request, fd, "one");
	plainly(&request, "hook");
	hook(&undo, fd, "two");
	plainly(&undo, "hook");
	try_request("HOOK_ADD of a node that is hooked", &request, &undo);

	holding(&request, "new", 600000);
	by_name(&undo, GS_CMD_HOLDING_DEL, "new");
	try_request("HOLDING_SET", &request, &undo);
	plainly(&request, "holding");
	try_request("HOLDING_DEL", &undo, &request);
	holding(&request, "new", 500000);
	holding(&undo, "new", 600000);
	try_request("HOLDING_SET, other times", &request, &undo);

	holding(&request, "h", 1);
	plainly(&request, "holding");
	watch(&request, "w", GS_MEMBER, 100001, both, 2);
	by_name(&undo, GS_CMD_WATCH_DEL, "w");
	try_request("WATCH_SET", &request, &undo);
	plainly(&request, "watch");
	try_request("WATCH_DEL", &undo, &request);
	watch(&request, "x", GS_EXEMPT, 100002, NULL, 0);
	by_name(&undo, GS_CMD_WATCH_DEL, "x");
	try_request("WATCH_SET, exempt", &request, &undo);

	lend();
	watch(&request, "b", GS_BORROWER, 100003, one, 1);
	by_name(&undo, GS_CMD_WATCH_DEL, "b");
	try_request("WATCH_SET, a borrower", &request, &undo);
	(void)close(fd);
}

/* A heartbeat looks whether ftrace works: where it has no memory to ask, no node may be lost. */
static void beats(void)
{
	cleanup_free char *before = kept();
	struct tally t = { .name = "HEARTBEAT" };
	struct nl_msg request;

	nl_start(&request, nl.family, GS_CMD_HEARTBEAT);
	plainly(&request, "a heartbeat");
	for (unsigned int n = 1, idle = 0; idle < 2; n++) {
		cleanup_free char *now = NULL;
		bool fired;
		int code = ask_armed(&request, n, &fired);

		t.fired += fired;
		idle = fired ? 0 : idle + 1;
		t.failed += code > 0;
		t.good += code == 0;
		if (code > 0 && !no_memory(code))
			complain(&t, "allocation %u: %s", n, strerrorname_np(code));
		/* With the old socket the agent goes. */
		if (code != 0)
			renew();
		now = kept();
		if (strcmp(now, before) != 0)
			complain(&t, "allocation %u: gave %d, and left\n%s", n, code, now);
	}
	plainly(&request, "a heartbeat");
	end_tally(&t);
}

static void hooks(const char *path)
{
	struct nl_msg request, undo;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		nl_die("%s: %s", path, strerror(errno));
	hook(&request, fd, "new");
	nl_start(&undo, nl.family, GS_CMD_HOOK_DEL);
	nl_put_u32(&undo, GS_A_DEV, gs_kdev_of(st.st_rdev));
	try_request("HOOK_ADD", &request, &undo);
	plainly(&request, "hook");
	try_request("HOOK_DEL", &undo, &request);
	(void)close(fd);
}

/* ---- Dumps: the first part is made within sendmsg, the others within recvmsg. */

/* 0, an errno, -1: no end. */
static int read_dump(unsigned int send_n, unsigned int recv_n, bool *ret_fired)
{
	static char buf[NL_MAX] __attribute__((aligned(4)));
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nl_said said = { 0 };
	struct nl_msg msg;
	ssize_t r;

	nl_start(&msg, nl.family, GS_CMD_DUMP);
	nl_hdr(&msg)->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nl_hdr(&msg)->nlmsg_len = (uint32_t)msg.len;
	if (send_n)
		arm(send_n);
	r = sendto(nl.fd, msg.buf, msg.len, 0, (void *)&kernel, sizeof(kernel));
	if (send_n)
		*ret_fired = disarm();
	if (r < 0)
		return errno;
	for (unsigned int part = 0;; part++) {
		struct nlmsghdr *nlh = (void *)buf;

		if (recv_n && part == 0)
			arm(recv_n);
		r = recv(nl.fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (recv_n && part == 0)
			*ret_fired = disarm();
		if (r < 0)
			return errno == EAGAIN ? -1 : errno;
		for (int rest = (int)r; NLMSG_OK(nlh, (unsigned int)rest);
		     nlh = NLMSG_NEXT(nlh, rest))
			if (nl_last(nlh, &said))
				return said.code;
	}
}

static void dumps(void)
{
	static const char *const names[] = { "a dump, asked for", "a dump, read" };
	char name[GS_NAME_MAX + 1];
	struct nl_msg msg;

	dev = 0xabc01;
	memset(name, 'x', sizeof(name));
	for (unsigned int i = 0; i < 300; i++) {
		(void)snprintf(name + GS_NAME_MAX - 4, 5, "%04u", i);
		holding(&msg, name, 60000);
		plainly(&msg, "holding");
	}
	for (unsigned int which = 0; which < 2; which++) {
		struct tally t = { .name = names[which] };

		for (unsigned int n = 1, idle = 0; idle < 2; n++) {
			bool fired = false;
			int code = read_dump(which ? 0 : n, which ? n : 0, &fired);

			t.fired += fired;
			idle = fired ? 0 : idle + 1;
			t.failed += code != 0;
			t.good += code == 0;
			if (code > 0 && !no_memory(code))
				complain(&t, "allocation %u: %s", n, strerrorname_np(code));
			renew();
			if (read_dump(0, 0, &fired) != 0)
				complain(&t, "allocation %u: no dump after it", n);
		}
		end_tally(&t);
	}
}

/* ---- Loading. */

static bool loaded(const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "/sys/module/%s", name);
	return access(path, F_OK) == 0;
}

static void load(const char *path, const char *parameters)
{
	struct tally t = { .name = "loading" }, u = { .name = "unloading" };
	char name[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)snprintf(name, sizeof(name), "%s", strrchr(path, '/') + 1);
	*strchr(name, '.') = '\0';
	if (fd < 0)
		nl_die("%s: %s", path, strerror(errno));
	for (unsigned int n = 1, idle = 0; idle < 2; n++) {
		bool fired;
		int r;

		arm(n);
		r = (int)syscall(SYS_finit_module, fd, parameters, 0);
		fired = disarm();
		t.fired += fired;
		idle = fired ? 0 : idle + 1;
		t.failed += r < 0;
		t.good += r == 0;
		if (r < 0 && !no_memory(errno))
			complain(&t, "allocation %u: %s", n, strerrorname_np(errno));
		if (loaded(name) != (r == 0))
			complain(&t, "allocation %u: gave %d, and is %sloaded", n, r,
				 loaded(name) ? "" : "not ");
		if (r == 0 && syscall(SYS_delete_module, name, 0) < 0)
			nl_die("unload: %s", strerror(errno));
	}
	end_tally(&t);
	for (unsigned int n = 1, idle = 0; idle < 2; n++) {
		bool fired;
		int r;

		if (!loaded(name) && syscall(SYS_finit_module, fd, parameters, 0) < 0)
			nl_die("load: %s", strerror(errno));
		arm(n);
		r = (int)syscall(SYS_delete_module, name, 0);
		fired = disarm();
		u.fired += fired;
		idle = fired ? 0 : idle + 1;
		u.failed += r < 0;
		u.good += r == 0;
		if (loaded(name) != (r < 0))
			complain(&u, "allocation %u: gave %d, and is %sloaded", n, r,
				 loaded(name) ? "" : "not ");
	}
	end_tally(&u);
	(void)close(fd);
}

/* ---- A borrower's open, and a listener. */

static void opens(const char *path)
{
	struct tally t = { .name = "open" };

	for (unsigned int n = 1, idle = 0; idle < 2; n++) {
		bool fired;
		int fd;

		arm(n);
		fd = open(path, O_RDWR | O_CLOEXEC);
		fired = disarm();
		t.fired += fired;
		idle = fired ? 0 : idle + 1;
		t.failed += fd < 0;
		t.good += fd >= 0;
		if (fd < 0 && !no_memory(errno))
			complain(&t, "allocation %u: %s", n, strerrorname_np(errno));
		if (fd >= 0)
			(void)close(fd);
	}
	end_tally(&t);
}

static void listens(void)
{
	struct tally t = { .name = "joining the group" };
	int group = (int)nl.group;

	for (unsigned int n = 1, idle = 0; idle < 2; n++) {
		bool fired;
		int r;

		renew();
		arm(n);
		r = setsockopt(nl.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group));
		fired = disarm();
		t.fired += fired;
		idle = fired ? 0 : idle + 1;
		t.failed += r < 0;
		t.good += r == 0;
		if (r < 0 && !no_memory(errno))
			complain(&t, "allocation %u: %s", n, strerrorname_np(errno));
	}
	end_tally(&t);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	open_control();
	if (strcmp(how, "load") == 0 && argc > 2) {
		load(argv[2], argc > 3 ? argv[3] : "");
		return nl_failures != 0;
	}
	if (strcmp(how, "open") == 0 && argc == 3) {
		opens(argv[2]);
		return nl_failures != 0;
	}
	nl_open(&nl);
	if (gs_klink_open(&watching, &err) < 0)
		nl_die("%s", err.msg);
	if (strcmp(how, "requests") == 0 && argc == 3)
		requests(argv[2]);
	else if (strcmp(how, "hook") == 0 && argc == 3)
		hooks(argv[2]);
	else if (strcmp(how, "beat") == 0)
		beats();
	else if (strcmp(how, "dump") == 0)
		dumps();
	else if (strcmp(how, "listen") == 0)
		listens();
	else
		nl_die("faultn: the head of its source says how to call it");
	gs_klink_close(watching);
	return nl_failures != 0;
}
