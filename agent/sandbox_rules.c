// SPDX-License-Identifier: Apache-2.0
/* Which system calls the agent may make. */
#include <errno.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "agent/sandbox_rules.h"
#include "common/cleanup.h"

/* LeakSanitizer looks at the other threads with ptrace, from a process of its own. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * Of glibc, libuv, libcurl with OpenSSL, libmicrohttpd, libmnl, gRPC and our code, from when the
 * filter stands. Each of these is seen in the suites: tests/vm/agent-calls.sh fails where one is
 * not any more (tests/vm/agent/rules.c reads what stands here).
 */
/* clang-format off */
static const char *const allowed[] = {
	/* files */
	"openat", "close", "read", "write", "lseek", "newfstatat", "fstatfs", "access", "readlink",
	"getdents64", "rename", "renameat", "linkat", "unlink",
	"unlinkat", "mkdir", "mkdirat", "chmod", "fchmod", "fchown", "fsync", "flock", "fcntl",
	"pipe2", "inotify_add_watch", "inotify_rm_watch",
	/* waiting */
	"epoll_create1", "epoll_ctl", "epoll_wait", "poll", "eventfd2",
	/* sockets */
	"connect", "bind", "listen", "accept4", "sendto", "sendmsg", "recvfrom", "recvmsg",
	"getsockopt", "setsockopt", "getsockname", "getpeername", "shutdown",
	/* memory */
	"munmap", "brk",
	/* threads and processes; signals are for borrowers too */
	"futex", "set_robust_list", "rseq", "exit", "exit_group", "getpid", "sched_yield", "kill",
	"pidfd_open", "wait4", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	/* who, how much */
	"geteuid", "prlimit64", "uname", "getrandom",
};
/* clang-format on */

/* What the suites do not meet on x86-64 with Debian 12; others do. */
/* clang-format off */
static const char *const rare[] = {
	/* arm64, which has no older ones: access, chmod, epoll_wait, poll, readlink */
	"faccessat", "fchmodat", "epoll_pwait", "ppoll", "readlinkat",
	/* is that cgroup one of version 1's devices? Of a container in another's PID namespace */
	"faccessat2",
	/* glibc's fstat() from 2.39 on; later libuv's epoll_pwait is one of those above */
	"fstat",
	/* malloc: what is large grows, a thread's part is given back, how many parts to have */
	"mremap", "madvise", "sched_getaffinity",
	/* qsort() of what is large: how much memory is there for a copy? */
	"sysinfo",
	/* abort() and raise(), for want of memory for one, and what glibc says then */
	"gettid", "tgkill", "writev",
	/* the registry's lock, which a runtime has at that moment */
	"clock_nanosleep",
	/* where there was no inotify instance to be had at the start */
	"inotify_init1",
	/* made by the kernel itself: what waited goes on, after SIGSTOP or a freezer */
	"restart_syscall",
	/* the vDSO, where the clock is one that only the kernel can read */
	"time", "gettimeofday", "clock_gettime", "clock_getres",
	/* the API server's name, of DNS: libcurl's thread asks for both families at once */
	"sendmmsg",
	/*
	 * The same of another service that the node's nsswitch.conf names: a library is loaded.
	 * Who we are can't fail, so libraries would take ENOSYS for a user.
	 */
	"pread64", "getuid", "getgid", "getegid",
	/* gRPC's mutexes ask for the priority of who has waited for long */
	"sched_getparam", "sched_getscheduler",
};
/* clang-format on */

/* Whoever makes us call one of these has taken over the process. */
/* clang-format off */
static const char *const deadly[] = {
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "bpf",
	"process_vm_readv", "process_vm_writev", "mount", "umount2", "pivot_root", "chroot",
	"open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "setns",
	"unshare", "reboot", "swapon", "swapoff", "iopl", "ioperm", "acct", "syslog", "add_key",
	"request_key", "keyctl",
#if !SANITIZED
	"ptrace",
#endif
};
/* clang-format on */

/*
 * Asked for as a matter of course by libraries that manage without. glibc tries clone3 for each
 * thread, whose flags a filter can't see; libuv tries io_uring.
 */
static const char *const quiet[] = { "clone3", "io_uring_setup" };

/* Calls that are allowed with certain values of one argument only. */
static const struct choice {
	const char *call;
	scmp_datum_t value;
	unsigned int argument;
	bool rare; /* as above */
} choices[] = {
	{ "socket", AF_UNIX, 0, false },
	{ "socket", AF_INET, 0, false },
	/* an API server's, or the operator's address for metrics */
	{ "socket", AF_INET6, 0, true },
	{ "socket", AF_NETLINK, 0, false },
	{ "socketpair", AF_UNIX, 0, false },
	{ "ioctl", FIONBIO, 1, false },
	/* glibc's resolver: is there more of an answer? */
	{ "ioctl", FIONREAD, 1, true },
	/* a container in a container is the outer one's (strangers.c) */
	{ "ioctl", NS_GET_PARENT, 1, false },
	{ "prctl", PR_SET_NAME, 0, false },
	/* PR_SET_VMA: how newer glibc names its memory */
	{ "prctl", 0x53564d41, 0, true },
};

static int rule(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned int n,
		const struct scmp_arg_cmp *args, struct gs_err *err)
{
	/* negative where this processor has no such call: it can't be made then */
	int call = seccomp_syscall_resolve_name(name);
	int ret;

	if (call == __NR_SCMP_ERROR)
		return gs_err_set(err, EINVAL, "system call filter: no call is named %s", name);
	ret = seccomp_rule_add_array(filter, action, call, n, args);
	if (ret < 0)
		return gs_err_errno(err, -ret, "system call filter: %s", name);
	return 0;
}

static int rules(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n,
		 struct gs_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++)
		ret = rule(filter, action, names[i], 0, NULL, err);
	return ret;
}

/* One rule more for a call that is allowed with certain arguments only. */
static int allow_if(scmp_filter_ctx filter, const char *name, struct scmp_arg_cmp arg,
		    struct gs_err *err)
{
	return rule(filter, SCMP_ACT_ALLOW, name, 1, &arg, err);
}

/*
 * What is executable comes from a file, which libraries that are loaded late need (the services of
 * nsswitch.conf), and can't be written to; what was writable never becomes executable.
 */
static int memory_rules(scmp_filter_ctx filter, struct gs_err *err)
{
	const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int ret = allow_if(filter, "mmap", no_exec, err);

	if (ret == 0)
		ret = allow_if(filter, "mmap",
			       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC), err);
	return ret < 0 ? ret : allow_if(filter, "mprotect", no_exec, err);
}

static int argument_rules(scmp_filter_ctx filter, struct gs_err *err)
{
	const scmp_datum_t apart = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	int ret = 0;

	for (size_t i = 0; i < GS_ARRAY_SIZE(choices) && ret == 0; i++)
		ret = allow_if(filter, choices[i].call,
			       SCMP_CMP(choices[i].argument, SCMP_CMP_EQ, choices[i].value), err);
	/* a thread, and nothing else */
	if (ret == 0)
		ret = allow_if(filter, "clone",
			       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | apart, CLONE_THREAD),
			       err);
	return ret < 0 ? ret : memory_rules(filter, err);
}

int sandbox_rules(scmp_filter_ctx filter, struct gs_err *err)
{
	/* made without the C library, by their oldest names; LeakSanitizer starts a process */
	static const char *const sanitizer[] = { "open",      "stat",	    "lstat", "dup",
						 "dup2",      "pipe",	    "fork",  "getppid",
						 "ptrace",    "clone",	    "prctl", "waitid",
						 "getrusage", "sigaltstack" };
	int ret;

	/* 32-bit and x32 calls have other numbers: no such program is ours */
	ret = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (ret == 0)
		ret = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	/* a binary tree instead of a list: there are many, and it is paid on each call */
	if (ret == 0)
		ret = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (ret < 0)
		return gs_err_errno(err, -ret, "system call filter");
	ret = rules(filter, SCMP_ACT_ALLOW, allowed, GS_ARRAY_SIZE(allowed), err);
	if (ret == 0)
		ret = rules(filter, SCMP_ACT_ALLOW, rare, GS_ARRAY_SIZE(rare), err);
	if (ret == 0)
		ret = rules(filter, SCMP_ACT_KILL_PROCESS, deadly, GS_ARRAY_SIZE(deadly), err);
	if (ret == 0)
		ret = rules(filter, SCMP_ACT_ERRNO(ENOSYS), quiet, GS_ARRAY_SIZE(quiet), err);
	if (ret == 0)
		ret = argument_rules(filter, err);
	if (ret == 0 && SANITIZED)
		ret = rules(filter, SCMP_ACT_ALLOW, sanitizer, GS_ARRAY_SIZE(sanitizer), err);
	return ret;
}
