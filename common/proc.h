/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells: who a process is, and which boot this is. */
#ifndef GPUSHARE_COMMON_PROC_H
#define GPUSHARE_COMMON_PROC_H

#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Clock ticks since boot when the process started: field 22 of /proc/PID/stat. -ESRCH: gone, or a
 * zombie.
 */
int gs_proc_start(pid_t pid, uint64_t *ret_ticks, struct gs_err *err);

/* The process's parent: field 4 there; 0 for one whose parent is in another PID namespace. */
int gs_proc_parent(pid_t pid, pid_t *ret, struct gs_err *err);

/* The same clock now (CLOCK_BOOTTIME in ticks of sysconf(_SC_CLK_TCK)). */
uint64_t gs_ticks_now(void);

/* CLOCK_BOOTTIME in milliseconds. */
uint64_t gs_boottime_ms(void);

/* This boot's id, 36 characters and a NUL. */
int gs_boot_id(char ret[37], struct gs_err *err);

/*
 * The process's cgroup as /proc/PID/cgroup shows it: the v2 path where there is a "0::" line and
 * no v1 devices hierarchy, else the devices hierarchy's. The caller frees.
 */
int gs_proc_cgroup(pid_t pid, char **ret, struct gs_err *err);

/* Inode of /proc/PID/ns/@name. */
int gs_proc_ns(pid_t pid, const char *name, uint64_t *ret, struct gs_err *err);

/* Reads a pid file: one positive number. The process may not exist. */
int gs_pid_file_read(const char *path, pid_t *ret, struct gs_err *err);

#endif
