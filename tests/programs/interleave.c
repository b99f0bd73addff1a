// SPDX-License-Identifier: Apache-2.0
/*
 * Measures commands against each other: runs them in turn, many times over, and prints the CPU time
 * of each. Machines change their pace from second to second, so a figure means something only
 * beside one that was taken at the same time; of the differences the median is told.
 *
 *	interleave ROUNDS [OPTION...] -- COMMAND... [-- COMMAND...]...
 *
 *	-r FROM TO   put a copy of FROM in the place of TO before each command
 *	-x PATH      remove the file PATH before each command
 *
 * Words NAME=VALUE in front of a command are for its environment, as in a shell.
 *
 * The first command is the one that the others are compared with. Prints a line for each of the
 * others: "own <median us of its user and system time over the first's> min <us> max <us>
 * total <median us> maxrss <KiB>", and one for the first: "base <median us> maxrss <KiB>".
 * A command that fails ends it all.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMANDS_MAX 8
#define FILES_MAX 16

extern char **environ;

struct restore {
	const char *to;
	char *data;
	size_t len;
};

static struct restore restores[FILES_MAX];
static const char *removes[FILES_MAX];
static size_t n_restores, n_removes;

static void die(const char *what, const char *which)
{
	(void)fprintf(stderr, "interleave: %s %s: %s\n", what, which, strerror(errno));
	exit(1);
}

static struct restore load(const char *from, const char *to)
{
	struct restore r = { .to = to };
	FILE *file = fopen(from, "re");
	long len;

	if (!file || fseek(file, 0, SEEK_END) < 0 || (len = ftell(file)) < 0)
		die("read", from);
	rewind(file);
	r.len = (size_t)len;
	r.data = malloc(r.len + 1);
	if (!r.data || fread(r.data, 1, r.len, file) != r.len)
		die("read", from);
	(void)fclose(file);
	return r;
}

static void prepare(void)
{
	for (size_t i = 0; i < n_restores; i++) {
		int fd = open(restores[i].to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		if (fd < 0 ||
		    write(fd, restores[i].data, restores[i].len) != (ssize_t)restores[i].len)
			die("write", restores[i].to);
		(void)close(fd);
	}
	for (size_t i = 0; i < n_removes; i++)
		if (unlink(removes[i]) < 0 && errno != ENOENT)
			die("remove", removes[i]);
}

/* User and system time of one run in microseconds. Of such short runs only the sum is exact. */
static double run(char **argv, long *ret_maxrss)
{
	struct rusage ru;
	int status, r;
	pid_t pid;

	prepare();
	for (; strchr(argv[0], '=') && argv[0][0] != '/'; argv++)
		if (putenv(argv[0]) != 0)
			die("set", argv[0]);
	/* vfork underneath: what is measured is the command and not the copying of ourselves */
	r = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (r != 0) {
		errno = r;
		die("run", argv[0]);
	}
	if (wait4(pid, &status, 0, &ru) != pid)
		die("wait for", argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		(void)fprintf(stderr, "interleave: %s failed (status %d)\n", argv[0], status);
		exit(1);
	}
	if (ru.ru_maxrss > *ret_maxrss)
		*ret_maxrss = ru.ru_maxrss;
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e6 +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int main(int argc, char **argv)
{
	char **command[COMMANDS_MAX];
	long maxrss[COMMANDS_MAX] = { 0 };
	double *took[COMMANDS_MAX], *own;
	size_t rounds, n = 0;
	int i = 2;

	if (argc < 4 || (rounds = strtoul(argv[1], NULL, 10)) == 0) {
		(void)fputs("usage: interleave ROUNDS [-r FROM TO] [-x PATH] -- COMMAND... "
			    "[-- COMMAND...]...\n",
			    stderr);
		return 2;
	}
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "-r") == 0 && i + 2 < argc && n_restores < FILES_MAX) {
			restores[n_restores++] = load(argv[i + 1], argv[i + 2]);
			i += 2;
		} else if (strcmp(argv[i], "-x") == 0 && i + 1 < argc && n_removes < FILES_MAX) {
			removes[n_removes++] = argv[++i];
		} else {
			errno = EINVAL;
			die("option", argv[i]);
		}
	}
	for (; i < argc && n < COMMANDS_MAX; i++) {
		if (strcmp(argv[i], "--") == 0) {
			argv[i] = NULL;
			command[n] = &argv[i + 1];
			took[n] = calloc(rounds, sizeof(double));
			n++;
		}
	}
	if (n == 0) {
		errno = EINVAL;
		die("commands:", "none");
	}
	own = calloc(rounds, sizeof(double));
	for (size_t k = 0; k < n; k++)
		for (int warm = 0; warm < 3; warm++)
			(void)run(command[k], &maxrss[k]);
	for (size_t round = 0; round < rounds; round++)
		for (size_t k = 0; k < n; k++) {
			/* each command also comes first now and then */
			size_t which = (k + round) % n;

			took[which][round] = run(command[which], &maxrss[which]);
		}
	for (size_t k = 1; k < n; k++) {
		double mid;

		for (size_t round = 0; round < rounds; round++)
			own[round] = took[k][round] - took[0][round];
		mid = median(own, rounds);
		printf("own %.1f min %.1f max %.1f total %.1f maxrss %ld\n", mid, own[0],
		       own[rounds - 1], median(took[k], rounds), maxrss[k]);
	}
	printf("base %.1f maxrss %ld\n", median(took[0], rounds), maxrss[0]);
	return 0;
}
