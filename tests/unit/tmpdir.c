// SPDX-License-Identifier: Apache-2.0
/* A temporary directory for a test, and small files in it. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/tmpdir.h"

char *tmpdir_make(void)
{
	const char *base = getenv("TMPDIR");
	char *dir;

	assert_true(asprintf(&dir, "%s/gpushare-unit-XXXXXX", base ? base : "/tmp") > 0);
	assert_non_null(mkdtemp(dir));
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void tmpdir_remove(char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

const char *tmpdir_path(const char *dir, const char *name)
{
	static char bufs[16][PATH_MAX];
	static unsigned int next;
	char *buf = bufs[next++ % 16];

	assert_true(snprintf(buf, PATH_MAX, "%s/%s", dir, name) < PATH_MAX);
	return buf;
}

void tmpdir_write(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0700);
		*p = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

char *tmpdir_read(const char *dir, const char *name)
{
	FILE *file = fopen(tmpdir_path(dir, name), "re");
	size_t cap = 0;
	char *text = NULL;

	assert_non_null(file);
	if (getdelim(&text, &cap, '\0', file) < 0) {
		free(text);
		text = strdup("");
	}
	(void)fclose(file);
	return text;
}

bool tmpdir_has(const char *dir, const char *name)
{
	struct stat st;

	return lstat(tmpdir_path(dir, name), &st) == 0;
}

int tmpdir_count(const char *dir, const char *name)
{
	DIR *d = opendir(tmpdir_path(dir, name));
	struct dirent *entry;
	int n = 0;

	if (!d)
		return -1;
	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(d);
	return n;
}
