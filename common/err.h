/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error idiom of all user space: a function that can fail returns 0 (or a useful
 * non-negative value) or -errno, takes `struct gs_err *` last and fills it with a sentence for
 * people. Only the main of a program prints it.
 */
#ifndef GPUSHARE_COMMON_ERR_H
#define GPUSHARE_COMMON_ERR_H

#include <stdbool.h>

/* Long enough for two paths and a reason; longer messages are cut, never refused. */
#define GS_ERR_MAX 1024

struct gs_err {
	int code; /* errno value, positive; 0: no error */
	char msg[GS_ERR_MAX];
};

/*
 * Sets the error and returns -@code, so that a caller can `return gs_err_set(err, EINVAL, ...)`.
 * @err may be NULL (the caller only wants the code). Messages are lower case, name the thing that
 * is wrong, and end without a full stop. Control characters that came from outside are replaced
 * by '?', so that a message is always one line.
 */
__attribute__((format(printf, 3, 4))) int gs_err_set(struct gs_err *err, int code, const char *fmt,
						     ...);

/* As gs_err_set(), and appends ": " and the text of errno value @code. */
__attribute__((format(printf, 3, 4))) int gs_err_errno(struct gs_err *err, int code,
						       const char *fmt, ...);

/*
 * Puts "<text>: " before the message of an error that is already set. Returns -err->code; -EINVAL
 * where @err is NULL, since nobody knows the code then.
 */
__attribute__((format(printf, 2, 3))) int gs_err_prefix(struct gs_err *err, const char *fmt, ...);

/*
 * Is it this machine, or this program, that has run out of something (-EMFILE, -ENFILE, -ENOMEM),
 * and no fault of what was asked about? The next one who looks may see it.
 */
bool gs_err_is_scarce(int r);

#endif
