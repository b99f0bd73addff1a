/* SPDX-License-Identifier: Apache-2.0 */
/* What happens before a container is created: first decided, then done. */
#ifndef GPUSHARE_RUNTIME_CREATE_H
#define GPUSHARE_RUNTIME_CREATE_H

#include <sys/stat.h>

#include "common/catalogue.h"
#include "common/config.h"
#include "runtime/inject.h"
#include "runtime/policy.h"
#include "runtime/request.h"
#include "runtime/rewrite.h"
#include "runtime/source.h"
#include "runtime/who.h"

struct create {
	/* given */
	const struct gs_config *config;
	const struct gs_err *config_err; /* code 0: the config was read */
	const char *bundle; /* NULL: the working directory */
	const char *id; /* NULL: the command line has none */
	const char *pid_file; /* NULL: none */
	const char *root; /* --root; NULL: none */
	const char *next; /* path of the next runtime */
	bool dry; /* nothing may come of it: nobody is asked for anything */
	uint64_t deadline_ms; /* CLOCK_BOOTTIME: creation is not delayed beyond */
	/* decided */
	int bundle_fd;
	char *bundle_path; /* real path */
	struct stat config_stat;
	struct gs_catalogue cat;
	struct spec spec;
	struct who who;
	struct request req;
	struct gs_grant grant;
	struct slice own;
	struct source *sources;
	size_t n_sources;
	struct rewrite rw;
	struct granted_list granted; /* the sources' devices */
	bool fenced; /* the target may have nothing else */
	enum gs_record_role role;
	bool recorded; /* it holds or receives devices: the registry gets a record */
	char *text; /* the new config.json; NULL: it stays as it is */
	size_t len;
};

/*
 * Reads the bundle and decides what is to happen; changes nothing anywhere. A container without
 * our annotations never fails here: what can't be understood is the next runtime's affair.
 */
int create_plan(struct create *c, struct gs_err *err);

/*
 * Does it: has its own cards confirmed and taken back, binds the grant, asks the agent for a
 * borrower, writes the record and, last, config.json. On an error the old config.json stands and
 * no record is left.
 */
int create_commit(struct create *c, struct gs_err *err);

/* Frees what the plan holds. */
void create_free(struct create *c);

#endif
