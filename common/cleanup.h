/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup attributes: what a variable owns is released when it goes out of scope. */
#ifndef GPUSHARE_COMMON_CLEANUP_H
#define GPUSHARE_COMMON_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Every such variable starts at NULL or -1. All of these keep errno, because they run between a
 * failing call and the code that reads errno. close() is never retried: on Linux the descriptor
 * is gone even after EINTR, and a retry may close another thread's.
 */
static inline void gs_cleanup_free(void *p)
{
	int saved = errno;

	free(*(void **)p);
	errno = saved;
}

static inline void gs_cleanup_close(const int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = saved;
}

static inline void gs_cleanup_closedir(DIR **dir)
{
	int saved = errno;

	if (*dir)
		(void)closedir(*dir);
	errno = saved;
}

static inline void gs_cleanup_json(json_t **json)
{
	int saved = errno;

	json_decref(*json);
	errno = saved;
}

#define cleanup_free __attribute__((cleanup(gs_cleanup_free)))
#define cleanup_close __attribute__((cleanup(gs_cleanup_close)))
#define cleanup_dir __attribute__((cleanup(gs_cleanup_closedir)))
#define cleanup_json __attribute__((cleanup(gs_cleanup_json)))

/* Hands the pointer over: gives its value and leaves NULL behind. */
#define gs_steal(ptr)                       \
	({                                  \
		__typeof__(ptr) _p = (ptr); \
		(ptr) = NULL;               \
		_p;                         \
	})

/* The same for a descriptor. */
static inline int gs_steal_fd(int *fd)
{
	int ret = *fd;

	*fd = -1;
	return ret;
}

#define GS_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
