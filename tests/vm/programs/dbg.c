// SPDX-License-Identifier: Apache-2.0
/*
 * A debugger, as far as what it debugs can tell:
 *
 *	dbg PID [KEY=VALUE]...
 *
 *	how=attach|seize   it stops threads by SIGSTOP, or by PTRACE_INTERRUPT (attach)
 *	steps=N            lets each thread go on to its next entry or exit of a system call, so
 *			   often; one that gets to neither is stopped where it is (6)
 *	end=detach         lets them go (the default)
 *	end=die            ends without that
 *	end=stay           traces them until they end
 *
 * Prints "threads=N steps=N stopped=N": how many of the steps ended because we stopped the thread.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 1024

static pid_t pid, threads[MAX_THREADS];
static int n_threads;
static bool seize;
static int n_steps = 6, stepped, stopped;

static void __attribute__((noreturn)) die(const char *what)
{
	(void)fprintf(stderr, "dbg: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void sleep_ms(int ms)
{
	struct timespec t = { .tv_nsec = (long)ms * 1000000 };

	(void)nanosleep(&t, NULL);
}

static void trace(enum __ptrace_request request, pid_t tid, unsigned long data, const char *what)
{
	if (ptrace(request, tid, 0, data) < 0)
		die(what);
}

static void stop(pid_t tid)
{
	if (seize)
		trace(PTRACE_INTERRUPT, tid, 0, "interrupt");
	else if (syscall(SYS_tgkill, pid, tid, SIGSTOP) < 0)
		die("stop");
}

/* Waits until it stops, or until @ms are over; the signal that it is to get, or -1: it goes on. */
static int stop_of(pid_t tid, int ms)
{
	int status, signo;
	pid_t got;

	while ((got = waitpid(tid, &status, __WALL | (ms < 0 ? 0 : WNOHANG))) == 0) {
		if (ms == 0)
			return -1;
		ms--;
		sleep_ms(1);
	}
	if (got < 0)
		die("wait");
	errno = ECHILD;
	if (!WIFSTOPPED(status))
		die("it has ended");
	signo = WSTOPSIG(status);
	/* Ours and ptrace's own are not for it. */
	return signo == SIGSTOP || (signo & ~0x80) == SIGTRAP ? 0 : signo;
}

static void look(pid_t tid)
{
	char regs[2048];
	struct iovec iov = { .iov_base = regs, .iov_len = sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		die("read registers");
	/* A debugger that called a function of the program puts them back like this. */
	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		die("write registers");
}

static void step(pid_t tid)
{
	int signo = 0;

	for (int i = 0; i < n_steps; i++) {
		look(tid);
		trace(PTRACE_SYSCALL, tid, (unsigned long)signo, "go on");
		stepped++;
		signo = stop_of(tid, 20);
		if (signo >= 0)
			continue;
		stopped++;
		stop(tid);
		signo = stop_of(tid, -1);
	}
}

static void stay(void)
{
	int status, signo, left = n_threads;
	pid_t tid;

	for (int i = 0; i < n_threads; i++)
		trace(PTRACE_CONT, threads[i], 0, "go on");
	while (left > 0 && (tid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status)) {
			left--;
			continue;
		}
		signo = WSTOPSIG(status);
		if (signo == SIGSTOP || (signo & ~0x80) == SIGTRAP)
			signo = 0;
		(void)ptrace(PTRACE_CONT, tid, 0, signo);
	}
}

static void find_threads(void)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		die(path);
	while ((entry = readdir(dir)) && n_threads < MAX_THREADS)
		if (entry->d_name[0] != '.')
			threads[n_threads++] = (pid_t)strtol(entry->d_name, NULL, 10);
	(void)closedir(dir);
}

int main(int argc, char **argv)
{
	const char *end = "detach";

	errno = EINVAL;
	if (argc < 2)
		die("whom");
	pid = (pid_t)strtol(argv[1], NULL, 10);
	for (int i = 2; i < argc; i++) {
		if (strncmp(argv[i], "steps=", 6) == 0)
			n_steps = (int)strtol(argv[i] + 6, NULL, 10);
		else if (strncmp(argv[i], "end=", 4) == 0)
			end = argv[i] + 4;
		else if (strncmp(argv[i], "how=", 4) == 0)
			seize = strcmp(argv[i] + 4, "seize") == 0;
		else
			die(argv[i]);
	}
	find_threads();
	for (int i = 0; i < n_threads; i++) {
		trace(seize ? PTRACE_SEIZE : PTRACE_ATTACH, threads[i],
		      seize ? PTRACE_O_TRACESYSGOOD : 0, "attach");
		if (seize)
			stop(threads[i]);
		(void)stop_of(threads[i], -1);
	}
	for (int i = 0; i < n_threads; i++)
		step(threads[i]);
	printf("threads=%d steps=%d stopped=%d\n", n_threads, stepped, stopped);
	(void)fflush(stdout);
	if (strcmp(end, "stay") == 0)
		stay();
	for (int i = 0; i < n_threads && strcmp(end, "detach") == 0; i++)
		trace(PTRACE_DETACH, threads[i], 0, "detach");
	return 0;
}
