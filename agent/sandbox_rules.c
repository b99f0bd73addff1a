// SPDX-License-Identifier: Apache-2.0
/* Which system calls the agent may make. */
#include <errno.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
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

/* Of glibc, libuv, libcurl with OpenSSL, libmicrohttpd, libmnl and our code; x86-64 and arm64. */
/* clang-format off */
static const char *const allowed[] = {
	/* files */
	"open", "openat", "close", "close_range", "read", "readv", "pread64", "preadv", "write",
	"writev", "pwrite64", "pwritev", "lseek", "stat", "fstat", "lstat", "newfstatat",
	"statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2", "readlink",
	"readlinkat", "getdents64", "getcwd", "rename", "renameat", "renameat2", "link",
	"linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "symlink", "symlinkat",
	"chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "umask", "utimensat",
	"fsync", "fdatasync", "ftruncate", "fallocate", "fadvise64", "flock", "fcntl", "dup",
	"dup2", "dup3", "pipe", "pipe2", "name_to_handle_at", "inotify_init", "inotify_init1",
	"inotify_add_watch", "inotify_rm_watch",
	/* waiting */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "poll",
	"ppoll", "select", "pselect6", "eventfd", "eventfd2", "timerfd_create",
	"timerfd_settime", "timerfd_gettime", "signalfd4", "nanosleep", "clock_nanosleep",
	"restart_syscall",
	/* sockets */
	"connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
	"recvfrom", "recvmsg", "recvmmsg", "getsockopt", "setsockopt", "getsockname",
	"getpeername", "shutdown",
	/* memory */
	"munmap", "mremap", "madvise", "brk", "mlock", "munlock",
	/* threads and processes; signals are for borrowers too */
	"futex", "set_robust_list", "rseq", "set_tid_address", "exit", "exit_group", "gettid",
	"getpid", "getppid", "getpgrp", "sched_yield", "sched_getaffinity", "membarrier",
	"kill", "tkill", "tgkill", "pidfd_open", "pidfd_send_signal", "wait4", "waitid",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigpending",
	"sigaltstack",
	/* gRPC's mutexes ask for the priority of who waits */
	"sched_getparam", "sched_getscheduler",
	/* who, when, how much */
	"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
	"capget", "getrlimit", "prlimit64", "getrusage", "times", "sysinfo", "uname",
	"getrandom", "time", "gettimeofday", "clock_gettime", "clock_getres",
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

static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
/* NS_GET_PARENT: a container in a container is the outer one's (strangers.c). */
static const unsigned long requests[] = {
	FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ, NS_GET_PARENT,
};
/* PR_SET_VMA: how newer glibc names its memory. */
static const int options[] = { PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ,
			       0x53564d41 };

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

static int memory_rules(scmp_filter_ctx filter, struct gs_err *err)
{
	static const char *const names[] = { "mmap", "mprotect" };
	int ret = 0;

	for (size_t i = 0; i < GS_ARRAY_SIZE(names) && ret == 0; i++) {
		ret = allow_if(filter, names[i], SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0), err);
		if (ret == 0)
			ret = allow_if(filter, names[i],
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE,
					       PROT_EXEC),
				       err);
	}
	return ret;
}

static int argument_rules(scmp_filter_ctx filter, struct gs_err *err)
{
	const scmp_datum_t apart = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	int ret = 0;

	for (size_t i = 0; i < GS_ARRAY_SIZE(families) && ret == 0; i++)
		ret = allow_if(filter, "socket", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]),
			       err);
	if (ret == 0)
		ret = allow_if(filter, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX), err);
	for (size_t i = 0; i < GS_ARRAY_SIZE(requests) && ret == 0; i++)
		ret = allow_if(filter, "ioctl", SCMP_A1(SCMP_CMP_EQ, requests[i]), err);
	for (size_t i = 0; i < GS_ARRAY_SIZE(options) && ret == 0; i++)
		ret = allow_if(filter, "prctl", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)options[i]),
			       err);
	/* a thread, and nothing else */
	if (ret == 0)
		ret = allow_if(filter, "clone",
			       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | apart, CLONE_THREAD),
			       err);
	return ret < 0 ? ret : memory_rules(filter, err);
}

int sandbox_rules(scmp_filter_ctx filter, struct gs_err *err)
{
	static const char *const sanitizer[] = { "ptrace", "clone", "prctl" };
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
		ret = rules(filter, SCMP_ACT_KILL_PROCESS, deadly, GS_ARRAY_SIZE(deadly), err);
	if (ret == 0)
		ret = rules(filter, SCMP_ACT_ERRNO(ENOSYS), quiet, GS_ARRAY_SIZE(quiet), err);
	if (ret == 0)
		ret = argument_rules(filter, err);
	if (ret == 0 && SANITIZED)
		ret = rules(filter, SCMP_ACT_ALLOW, sanitizer, GS_ARRAY_SIZE(sanitizer), err);
	return ret;
}
