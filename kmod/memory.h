/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory of a holding's members: all address spaces that one of their threads lives in. */
#ifndef GS_KMOD_MEMORY_H
#define GS_KMOD_MEMORY_H

#include <linux/mm_types.h>

#include "gs.h"

#define GS_MEMORY_MAX 4096
#define GS_MEMORY_BITS 13 /* of its index: half of it stays empty */

/**
 * struct gs_memory - address spaces, with a reference on each
 * @mm: in the order in which they were found
 * @index: by hash: one more than the place in @mm, or 0
 */
struct gs_memory {
	unsigned int n;
	struct mm_struct *mm[GS_MEMORY_MAX];
	u16 index[1 << GS_MEMORY_BITS];
};

/** gs_memory_new() - Context: process. Return: an empty one, or NULL. */
struct gs_memory *gs_memory_new(void);

/** gs_memory_free() - Context: process, with any lock. */
void gs_memory_free(struct gs_memory *memory);

/**
 * gs_memory_add() - adds those of the holding's members that are not in it
 *
 * What is being forked can't be seen yet, though it has its mappings: a member who forks is waited
 * for, by asking again. After 0 every memory that a member's fork had begun to copy is in @memory,
 * or is copied from one of @memory after this began.
 * Context: process, gs_config held. Return: 0; -EAGAIN somebody forks; -E2BIG there is no place.
 */
int gs_memory_add(struct gs_memory *memory, const struct gs_holding *holding);

/** gs_memory_has() - is it in there? Context: any. */
bool gs_memory_has(const struct gs_memory *memory, const struct mm_struct *mm);

#endif
