// SPDX-License-Identifier: GPL-2.0-only
/* A flag says that a callback needs no guard (before 5.11). */
#include <linux/ftrace.h>

int use = FTRACE_OPS_FL_RECURSION_SAFE;
