/* SPDX-License-Identifier: Apache-2.0 */
/* What all parts of play share: its links to the module, and how a step says what is wrong. */
#ifndef PLAY_TELL_H
#define PLAY_TELL_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/klink.h"
#include "common/proc.h"
#include "common/xalloc.h"

static struct gs_klink *kmod;
static struct gs_err err;

/* The step's result: 0, or an errno with what to say of it in err. */
static int __attribute__((format(printf, 2, 3))) wrong(int code, const char *fmt, ...)
{
	char text[GS_ERR_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return -gs_err_set(&err, code, "%s", text);
}

static void note(const char *text)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)dprintf(fd, "<4>gpushare-test: %s\n", text);
	(void)close(fd);
}

static uint64_t now_ms(void)
{
	return gs_boottime_ms();
}

static void sleep_ms(unsigned int ms)
{
	(void)usleep(ms * 1000);
}

/* How much longer things take on this kernel: see suite/lib.sh. */
static int how_slow(void)
{
	static int n;
	FILE *f = n ? NULL : fopen("/vm/slow", "re");

	if (f) {
		if (fscanf(f, "%d", &n) != 1)
			n = 0;
		(void)fclose(f);
	}
	n = n > 0 ? n : 1;
	return n;
}

#define PATIENCE_MS (60000 * how_slow()) /* how long a step waits for what must come */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	int code = errno;

	if (fd >= 0)
		(void)close(fd);
	return n < 0 ? wrong(code, "%s", path) : 0;
}

#endif
