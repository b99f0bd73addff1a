// SPDX-License-Identifier: Apache-2.0
/* The agent's capabilities and system call filter, each tried in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "agent/sandbox.h"
#include "tests/unit/tmpdir.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* In a child: ends it with the line that failed. */
#define CHECK(what)                                                                  \
	do {                                                                         \
		if (!(what)) {                                                       \
			(void)fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, \
				      strerror(errno));                              \
			_exit(1);                                                    \
		}                                                                    \
	} while (0)

/* Runs @what in a child; gives its wait status. */
static int in_child(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void passes(void (*what)(void))
{
	assert_int_equal(in_child(what), 0);
}

static void filter(void)
{
	struct gs_err err = { 0 };

	if (sandbox_filter(&err) < 0) {
		(void)fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
}

static uint64_t count_of; /* of the call named... */
static const char *name_of;

static void take_count(const char *call, uint64_t count, void *arg)
{
	if (strcmp(call, name_of) == 0)
		count_of += count;
}

static uint64_t denied_of(const char *name)
{
	count_of = 0;
	name_of = name;
	sandbox_denied_each(take_count, NULL);
	return count_of;
}

static void denied_body(void)
{
	char name[] = "x";

	filter();
	CHECK(sandbox_denied() == 0);
	errno = 0;
	CHECK(sethostname(name, 1) == -1 && errno == ENOSYS);
	CHECK(sethostname(name, 1) == -1 && errno == ENOSYS);
	CHECK(syscall(SYS_personality, 0xffffffff) == -1 && errno == ENOSYS);
	CHECK(syscall(1023, 1, 2, 3, 4, 5, 6) == -1 && errno == ENOSYS);
	CHECK(denied_of("sethostname") == 2);
	CHECK(denied_of("personality") == 1);
	CHECK(denied_of("1023") == 1);
	CHECK(denied_of("getpid") == 0);
	CHECK(sandbox_denied() == 4);
	/* an error of a library's own making is not disturbed */
	errno = EXDEV;
	(void)syscall(SYS_getpid);
	CHECK(errno == EXDEV);
}

static void denied_is_enosys_and_counted(void **state)
{
	passes(denied_body);
}

static void arguments_body(void)
{
	int ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *page;

	filter();
	/* whose container is this one in? Of our own namespace nobody is told. */
	CHECK(ns >= 0 && ioctl(ns, NS_GET_PARENT) == -1 && errno == EPERM);
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) == -1 && errno == ENOSYS);
	CHECK(socketpair(AF_INET, SOCK_STREAM, 0, (int[2]){ 0 }) == -1 && errno == ENOSYS);
	CHECK(ioctl(0, TIOCSTI, "x") == -1 && errno == ENOSYS);
	CHECK(execl("/bin/true", "true", NULL) == -1 && errno == ENOSYS);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0) == MAP_FAILED &&
	      errno == ENOSYS);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == -1 && errno == ENOSYS);
	CHECK(mprotect(page, 4096, PROT_READ | PROT_EXEC) == -1 && errno == ENOSYS);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0) != MAP_FAILED);
	CHECK(denied_of("socket") == 1 && denied_of("ioctl") == 1 && denied_of("execve") == 1);
	CHECK(denied_of("mmap") == 1 && denied_of("mprotect") == 2);
	if (SANITIZED)
		return;
	CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == -1 && errno == ENOSYS);
	CHECK(fork() == -1 && errno == ENOSYS);
	CHECK(syscall(SYS_clone, CLONE_NEWNS | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, 0, 0,
		      0) == -1 &&
	      errno == ENOSYS);
	CHECK(denied_of("clone") == 2);
	CHECK(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS);
	CHECK(denied_of("clone3") == 0); /* too common to be news */
}

static void arguments_count(void **state)
{
	passes(arguments_body);
}

static void *deny_in_thread(void *arg)
{
	char name[] = "x";

	CHECK(pthread_setname_np(pthread_self(), "thread") == 0);
	for (int i = 0; i < 1000; i++)
		CHECK(sethostname(name, 1) == -1 && errno == ENOSYS);
	return arg;
}

static void threads_body(void)
{
	pthread_t threads[4];

	filter();
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, deny_in_thread, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(sandbox_denied() == 4000);
}

static void threads_work_and_count(void **state)
{
	passes(threads_body);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *deny_after_gate(void *arg)
{
	(void)pthread_mutex_lock(&gate);
	(void)pthread_mutex_unlock(&gate);
	return deny_in_thread(arg);
}

static void earlier_thread_body(void)
{
	pthread_t thread;

	(void)pthread_mutex_lock(&gate);
	CHECK(pthread_create(&thread, NULL, deny_after_gate, NULL) == 0);
	filter();
	(void)pthread_mutex_unlock(&gate);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(sandbox_denied() == 1000);
}

static void threads_from_before_are_filtered(void **state)
{
	passes(earlier_thread_body);
}

static int deadly_call;

static void deadly_body(void)
{
	filter();
	(void)syscall(deadly_call, 0, 0, 0, 0, 0, 0);
}

static void deadly_calls_kill(void **state)
{
	static const int calls[] = { SYS_init_module, SYS_finit_module, SYS_delete_module,
				     SYS_kexec_load,  SYS_bpf,		SYS_process_vm_writev,
				     SYS_mount,	      SYS_umount2,	SYS_pivot_root,
				     SYS_chroot,      SYS_setns,	SYS_unshare,
				     SYS_reboot,      SYS_swapon,	SYS_keyctl,
				     SYS_ptrace };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int status;

		if (SANITIZED && calls[i] == SYS_ptrace)
			continue;
		deadly_call = calls[i];
		status = in_child(deadly_body);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("call %d: status %#x", calls[i], (unsigned int)status);
	}
}

static void sent_body(void)
{
	filter();
	(void)raise(SIGSYS);
}

/* One that somebody sends is no denied call. */
static void a_signal_that_was_sent(void **state)
{
	int status = in_child(sent_body);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void blocked_body(void)
{
	sigset_t all;
	char name[] = "x";

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	filter();
	CHECK(sethostname(name, 1) == -1 && errno == ENOSYS);
}

static void unblocks_its_signal(void **state)
{
	passes(blocked_body);
}

static const char *dir;
static int work_done;

static void in_pool(uv_work_t *work)
{
	work_done++;
}

static void resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
	CHECK(status == 0);
	uv_freeaddrinfo(res);
	work_done++;
}

static void file_changed(uv_fs_event_t *handle, const char *name, int events, int status)
{
	uv_close((uv_handle_t *)handle, NULL);
	work_done++;
}

/* What the agent lives on. */
static void allowed_body(void)
{
	uv_loop_t loop;
	uv_work_t work;
	uv_getaddrinfo_t query;
	uv_fs_event_t watch;
	char path[512];
	int fd, pair[2];

	/* of its loop, what is made before: the first folder that it watches, too */
	CHECK(uv_loop_init(&loop) == 0);
	CHECK(uv_fs_event_init(&loop, &watch) == 0);
	CHECK(uv_fs_event_start(&watch, file_changed, "/", 0) == 0);
	filter();
	CHECK(uv_queue_work(&loop, &work, in_pool, NULL) == 0);
	CHECK(uv_getaddrinfo(&loop, &query, resolved, "localhost", "80", NULL) == 0);
	CHECK(uv_fs_event_stop(&watch) == 0);
	CHECK(uv_fs_event_start(&watch, file_changed, dir, 0) == 0);
	(void)snprintf(path, sizeof(path), "%s/new", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0 && close(fd) == 0);
	CHECK(rename(path, tmpdir_path(dir, "old")) == 0);
	CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
	CHECK(work_done == 3);
	CHECK(uv_loop_close(&loop) == 0);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 16);
	CHECK(fd >= 0 && close(fd) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(kill(getpid(), 0) == 0);
	CHECK(sandbox_denied() == 0);
}

static void what_the_agent_needs_works(void **state)
{
	char *made = tmpdir_make();

	dir = made;
	passes(allowed_body);
	tmpdir_remove(made);
}

/* Text of a line of /proc/self/status, without its name. */
static uint64_t status_of(const char *field)
{
	char line[256];
	uint64_t value = UINT64_MAX;
	FILE *f = fopen("/proc/self/status", "re");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			value = strtoull(line + strlen(field) + 1, NULL, 16);
	(void)fclose(f);
	return value;
}

static void capabilities_body(void)
{
	static const cap_value_t keep[] = { CAP_KILL, CAP_NET_ADMIN };
	const uint64_t want = 1ULL << CAP_KILL | 1ULL << CAP_NET_ADMIN;
	struct gs_err err = { 0 };

	if (sandbox_capabilities(keep, 2, &err) < 0)
		(void)fprintf(stderr, "%s\n", err.msg);
	CHECK(err.code == 0);
	CHECK(status_of("CapEff:") == want);
	CHECK(status_of("CapPrm:") == want);
	CHECK((status_of("CapBnd:") & ~want) == 0);
	CHECK(status_of("CapInh:") == 0);
	CHECK(status_of("CapAmb:") == 0);
	CHECK(status_of("NoNewPrivs:") == 1);
	CHECK(chown("/proc/self", 1, 1) < 0);
	CHECK(chroot("/") == -1 && errno == EPERM);
	/* once more is once */
	CHECK(sandbox_capabilities(keep, 2, &err) == 0);
	/* what is gone is named */
	CHECK(sandbox_capabilities((cap_value_t[]){ CAP_SYS_BOOT }, 1, &err) == -EPERM);
	CHECK(strcmp(err.msg, "not started with the capability cap_sys_boot") == 0);
	CHECK(sandbox_capabilities(keep, 1, &err) == -EPERM);
	CHECK(strstr(err.msg, "dropping cap_net_admin from the bounding set: "));
	/* and the filter needs none */
	CHECK(sandbox_filter(&err) == 0);
}

static void rings_body(void)
{
	const cap_value_t keep[] = { CAP_KILL };
	struct gs_err err = { 0 };
	uv_loop_t loop;

	CHECK(sandbox_capabilities(keep, 1, &err) == 0);
	CHECK(sandbox_no_rings(&err) == 0);
	CHECK(syscall(SYS_io_uring_setup, 0, NULL) == -1 && errno == ENOSYS);
	CHECK(uv_loop_init(&loop) == 0);
	CHECK(sandbox_filter(&err) == 0);
	CHECK(syscall(SYS_io_uring_setup, 0, NULL) == -1 && errno == ENOSYS);
	CHECK(sandbox_denied() == 0);
	CHECK(uv_run(&loop, UV_RUN_NOWAIT) == 0 && uv_loop_close(&loop) == 0);
}

static void no_rings_for_the_loop(void **state)
{
	if (geteuid() != 0)
		skip();
	passes(rings_body);
}

static void capabilities_go(void **state)
{
	if (geteuid() != 0)
		skip();
	passes(capabilities_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denied_is_enosys_and_counted),
		cmocka_unit_test(arguments_count),
		cmocka_unit_test(threads_work_and_count),
		cmocka_unit_test(threads_from_before_are_filtered),
		cmocka_unit_test(deadly_calls_kill),
		cmocka_unit_test(a_signal_that_was_sent),
		cmocka_unit_test(unblocks_its_signal),
		cmocka_unit_test(what_the_agent_needs_works),
		cmocka_unit_test(no_rings_for_the_loop),
		cmocka_unit_test(capabilities_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
