/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share. */
#ifndef GPUSHARE_TESTS_FUZZ_H
#define GPUSHARE_TESTS_FUZZ_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/err.h"
#include "common/xalloc.h"

/* A property that every input must keep; libFuzzer keeps the input that does not. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* An error has a code and one line of words, and its code is what the function gave. */
__attribute__((unused)) static void check_error(int r, const struct gs_err *err)
{
	CHECK(r < 0 && err->code == -r && err->msg[0]);
	CHECK(strlen(err->msg) < GS_ERR_MAX);
	for (const char *p = err->msg; *p; p++)
		CHECK((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/* A copy with a NUL behind it, in memory of exactly that size. The caller frees. */
__attribute__((unused)) static char *copy_input(const uint8_t *data, size_t size)
{
	char *copy = gs_malloc(size + 1);

	memcpy(copy, data, size);
	copy[size] = '\0';
	return copy;
}

/* Takes the next part of the input, up to @separator or its end, as a string. The caller frees. */
__attribute__((unused)) static char *next_part(const uint8_t **data, size_t *size, char separator)
{
	const uint8_t *stop = *size ? memchr(*data, separator, *size) : NULL;
	size_t n = stop ? (size_t)(stop - *data) : *size;
	char *part = copy_input(*data, n);

	*data += n + (stop != NULL);
	*size -= n + (stop != NULL);
	return part;
}

static char fuzz_dir_path[128];

/* At exit: the folder of fuzz_dir(). */
__attribute__((unused)) static void remove_fuzz_dir(void)
{
	char command[192];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", fuzz_dir_path);
	if (system(command) != 0)
		(void)fprintf(stderr, "%s stays\n", fuzz_dir_path);
}

/* A folder of this process in memory, for readers that take files; gone at exit. */
__attribute__((unused)) static const char *fuzz_dir(void)
{
	if (!fuzz_dir_path[0]) {
		const char *base = getenv("FUZZ_TMP");

		(void)snprintf(fuzz_dir_path, sizeof(fuzz_dir_path), "%s/gpushare-fuzz-XXXXXX",
			       base ? base : "/dev/shm");
		CHECK(mkdtemp(fuzz_dir_path));
		CHECK(atexit(remove_fuzz_dir) == 0);
	}
	return fuzz_dir_path;
}

/* Writes the file @name of that folder. */
__attribute__((unused)) static void fuzz_file(const char *name, const void *data, size_t size)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", fuzz_dir(), name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, data, size) == (ssize_t)size);
	(void)close(fd);
}

#endif
