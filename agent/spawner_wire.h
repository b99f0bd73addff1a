/* SPDX-License-Identifier: Apache-2.0 */
/* What passes between spawner.c and the process that spawner_main.c is; nobody else's. */
#ifndef GPUSHARE_AGENT_SPAWNER_WIRE_H
#define GPUSHARE_AGENT_SPAWNER_WIRE_H

#include <stdint.h>

enum spawner_op {
	SPAWNER_RUN, /* to it, with stdin and stdout as SCM_RIGHTS */
	SPAWNER_KILL, /* to it */
	SPAWNER_ENDED, /* from it */
};

/* One packet. */
struct spawner_msg {
	uint32_t op;
	uint32_t id; /* the agent's name for the child */
	int32_t status; /* ENDED: of waitpid() */
	uint32_t len; /* RUN: of args */
	char args[7168]; /* RUN: each with its NUL */
};

#define SPAWNER_HEAD offsetof(struct spawner_msg, args)

/* What the spawner does until the other end of @fd is closed. */
__attribute__((noreturn)) void spawner_main(int fd);

#endif
