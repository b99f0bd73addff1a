// SPDX-License-Identifier: Apache-2.0
/* Capabilities, and what becomes of a system call that the filter does not allow. */
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "agent/sandbox.h"
#include "agent/sandbox_rules.h"

/* si_code of a SIGSYS from seccomp; not in every libc's headers. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

/* Above every number there is; what has a higher one (x32's bit) is counted in the last. */
#define MAX_CALL 1024

static atomic_uint_fast64_t denied[MAX_CALL];

static void set_result(ucontext_t *context, long result)
{
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RAX] = result;
#elif defined(__aarch64__)
	context->uc_mcontext.regs[0] = (unsigned long)result;
#else
#error "which register holds a system call's result here?"
#endif
}

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	unsigned int call = (unsigned int)info->si_syscall;

	if (info->si_code == SYS_SECCOMP) {
		atomic_fetch_add_explicit(&denied[call < MAX_CALL ? call : MAX_CALL - 1], 1,
					  memory_order_relaxed);
		/* where sigreturn puts the result: the caller sees a kernel without this call */
		set_result(context, -ENOSYS);
	} else {
		/* from kill(2): what it would do without us */
		(void)signal(sig, SIG_DFL);
		(void)raise(sig);
	}
	errno = saved;
}

uint64_t sandbox_denied(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < MAX_CALL; i++)
		sum += atomic_load_explicit(&denied[i], memory_order_relaxed);
	return sum;
}

void sandbox_denied_each(void (*each)(const char *call, uint64_t count, void *arg), void *arg)
{
	for (int i = 0; i < MAX_CALL; i++) {
		uint64_t count = atomic_load_explicit(&denied[i], memory_order_relaxed);
		char number[16];
		char *name;

		if (count == 0)
			continue;
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
		(void)snprintf(number, sizeof(number), "%d", i);
		each(name ? name : number, count, arg);
		free(name);
	}
}

int sandbox_no_rings(struct gs_err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int ret;

	if (!filter)
		return gs_err_set(err, ENOMEM, "system call filter: no memory");
	ret = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0);
	if (ret == 0)
		ret = seccomp_load(filter);
	seccomp_release(filter);
	return ret < 0 ? gs_err_errno(err, -ret, "refusing io_uring") : 0;
}

int sandbox_filter(struct gs_err *err)
{
	struct sigaction action = { .sa_sigaction = on_sigsys,
				    /* a denied call may interrupt no other one, nor be lost */
				    .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	sigset_t sigsys;
	int ret;

	if (!filter)
		return gs_err_set(err, ENOMEM, "system call filter: no memory");
	ret = sandbox_rules(filter, err);
	if (ret < 0)
		goto out;
	(void)sigemptyset(&action.sa_mask);
	(void)sigemptyset(&sigsys);
	(void)sigaddset(&sigsys, SIGSYS);
	if (sigaction(SIGSYS, &action, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &sigsys, NULL) < 0) {
		ret = gs_err_errno(err, errno, "catching SIGSYS");
		goto out;
	}
	ret = seccomp_load(filter);
	if (ret < 0)
		ret = gs_err_errno(err, -ret, "system call filter");
out:
	seccomp_release(filter);
	return ret;
}

/* As gs_err_set(), with the name of a capability in the middle. */
static int cap_err(struct gs_err *err, int code, const char *before, cap_value_t cap,
		   const char *behind)
{
	char *name = cap_to_name(cap);

	(void)gs_err_set(err, code, "%s%s%s", before, name ? name : "?", behind);
	(void)cap_free(name);
	return -code;
}

static int have_all(const cap_value_t *keep, size_t n, struct gs_err *err)
{
	cap_t have = cap_get_proc();
	int ret = 0;

	if (!have)
		return gs_err_errno(err, errno, "reading capabilities");
	for (size_t i = 0; i < n && ret == 0; i++) {
		cap_flag_value_t value = CAP_CLEAR;

		if (cap_get_flag(have, keep[i], CAP_PERMITTED, &value) < 0 || value != CAP_SET)
			ret = cap_err(err, EPERM, "not started with the capability ", keep[i], "");
	}
	(void)cap_free(have);
	return ret;
}

static bool kept(cap_value_t cap, const cap_value_t *keep, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (keep[i] == cap)
			return true;
	return false;
}

int sandbox_capabilities(const cap_value_t *keep, size_t n, struct gs_err *err)
{
	cap_t caps;
	int ret = have_all(keep, n, err);

	if (ret < 0)
		return ret;
	/* First, since it takes a capability itself. What is dropped already needs none. */
	for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; cap++)
		if (!kept(cap, keep, n) && cap_get_bound(cap) == 1 && cap_drop_bound(cap) < 0)
			return cap_err(err, errno, "dropping ", cap,
				       " from the bounding set: not permitted");
	caps = cap_init();
	if (!caps)
		return gs_err_errno(err, errno, "capabilities");
	if ((n > 0 && (cap_set_flag(caps, CAP_PERMITTED, (int)n, keep, CAP_SET) < 0 ||
		       cap_set_flag(caps, CAP_EFFECTIVE, (int)n, keep, CAP_SET) < 0)) ||
	    cap_set_proc(caps) < 0 || cap_reset_ambient() < 0)
		ret = gs_err_errno(err, errno, "giving up capabilities");
	else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		ret = gs_err_errno(err, errno, "no_new_privs");
	(void)cap_free(caps);
	return ret;
}
