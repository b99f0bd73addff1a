// SPDX-License-Identifier: Apache-2.0
/*
 * What tests run inside containers: waits as a pod's pause process, and says what the kernel
 * answers to an open of a device, which tells whether the device rules allow it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = "usage: probe pause\n"
			    "       probe PATH|c:MAJOR:MINOR|b:MAJOR:MINOR...\n"
			    "       probe -r|-w|-rw PATH...\n";

static void on_signal(int sig)
{
	(void)sig;
	_exit(0);
}

/* The first process of a PID namespace: reaps what is handed to it until it is told to end. */
static _Noreturn void pause_forever(void)
{
	sigset_t set;
	int sig;

	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		if (sigwait(&set, &sig) == 0)
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
}

static const char *answer(const char *path, int flags)
{
	/* Without O_NONBLOCK some drivers wait for their hardware. */
	int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return "OK";
	}
	return strerrorname_np(errno);
}

/*
 * A node of that number is made for the moment, so the answer is about the rules alone, whatever
 * the container finds in its /dev. Where no node can be made the answer is MKNOD:<errno>.
 */
static int probe_number(const char *arg, int flags)
{
	char type, path[64];
	unsigned int major, minor;
	const char *said;

	if (sscanf(arg, "%c:%u:%u", &type, &major, &minor) != 3 || (type != 'c' && type != 'b'))
		return -1;
	snprintf(path, sizeof(path), "/tmp/probe.%d", getpid());
	if (mknod(path, (type == 'c' ? S_IFCHR : S_IFBLK) | 0600, makedev(major, minor)) < 0) {
		printf("%s MKNOD:%s\n", arg, strerrorname_np(errno));
		return 0;
	}
	said = answer(path, flags);
	unlink(path);
	printf("%s %s\n", arg, said);
	return 0;
}

int main(int argc, char **argv)
{
	int flags = O_RDWR, i = 1;

	if (argc == 2 && strcmp(argv[1], "pause") == 0)
		pause_forever();

	if (argc > 1 && argv[1][0] == '-') {
		if (strcmp(argv[1], "-r") == 0)
			flags = O_RDONLY;
		else if (strcmp(argv[1], "-w") == 0)
			flags = O_WRONLY;
		else if (strcmp(argv[1], "-rw") != 0)
			argc = 0;
		i++;
	}
	if (i >= argc) {
		fputs(usage, stderr);
		return 2;
	}
	for (; i < argc; i++) {
		if (argv[i][0] == '/') {
			printf("%s %s\n", argv[i], answer(argv[i], flags));
		} else if (probe_number(argv[i], flags) < 0) {
			fputs(usage, stderr);
			return 2;
		}
	}
	return 0;
}
