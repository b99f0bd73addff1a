// SPDX-License-Identifier: GPL-2.0-only
/* Compiles everywhere: the control of all probes. */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <net/genetlink.h>
