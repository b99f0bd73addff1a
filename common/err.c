// SPDX-License-Identifier: Apache-2.0
/* Error values that carry a sentence. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"

/* A name from a pod may hold escape sequences; a terminal or a log must never see them. */
static void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

int gs_err_set(struct gs_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	one_line(err->msg);
	return -code;
}

int gs_err_errno(struct gs_err *err, int code, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	(void)snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", strerror(code));
	one_line(err->msg);
	return -code;
}

int gs_err_prefix(struct gs_err *err, const char *fmt, ...)
{
	char old[GS_ERR_MAX];
	va_list ap;
	size_t len;

	if (!err)
		return -EINVAL;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	one_line(err->msg);
	len = strlen(err->msg);
	(void)snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", old);
	return -err->code;
}

bool gs_err_is_scarce(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}
