// SPDX-License-Identifier: Apache-2.0
/*
 * A next runtime that runs nothing: writes down what it was called with and ends with status 42,
 * which nothing of ours does. The list is "calls" in the folder of the program, one line for each
 * thing, bytes as hex:
 *
 *	exe HEX, arg HEX (each argument, argv[0] first), env HEX, fd NUMBER HEX (its target), end
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS 42

extern char **environ;

static void line(FILE *f, const char *what, const char *bytes)
{
	(void)fprintf(f, "%s ", what);
	for (; *bytes; bytes++)
		(void)fprintf(f, "%02x", (unsigned char)*bytes);
	(void)fputc('\n', f);
}

/* Looked at before this program opens anything itself; the folder's own descriptor is left out. */
static void descriptors(FILE *f)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		char target[PATH_MAX], what[300];
		ssize_t n;

		if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(dir))
			continue;
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		(void)snprintf(what, sizeof(what), "fd %s", e->d_name);
		line(f, what, target);
	}
	if (dir)
		(void)closedir(dir);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX], *text = NULL, *slash;
	size_t len;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("calls"));
	FILE *f = open_memstream(&text, &len);
	int fd;

	if (n <= 0 || !f)
		return 1;
	path[n] = '\0';
	line(f, "exe", path);
	for (int i = 0; i < argc; i++)
		line(f, "arg", argv[i]);
	for (char **e = environ; *e; e++)
		line(f, "env", *e);
	descriptors(f);
	(void)fputs("end\n", f);
	if (fclose(f) != 0)
		return 1;
	slash = strrchr(path, '/');
	(void)strcpy(slash + 1, "calls");
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return 1;
	return STATUS;
}
