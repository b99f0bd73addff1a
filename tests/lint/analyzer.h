/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file that clang's analyzer reads: tells it what it cannot see from one
 * file, that the functions which set an error give a negative number. Without it the analyzer
 * follows paths on which a call failed and yet returned 0.
 */
#ifndef GPUSHARE_LINT_ANALYZER_H
#define GPUSHARE_LINT_ANALYZER_H

#include "common/err.h"

static inline int gs_lint_negative(int ret)
{
	if (ret >= 0)
		__builtin_unreachable();
	return ret;
}

#define gs_err_set(...) gs_lint_negative((gs_err_set)(__VA_ARGS__))
#define gs_err_errno(...) gs_lint_negative((gs_err_errno)(__VA_ARGS__))
#define gs_err_prefix(...) gs_lint_negative((gs_err_prefix)(__VA_ARGS__))

#endif
