/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpusharectl setup: what its parts share. For each runtime a plan says which files change and how;
 * the verb shows it and carries it out, and a record in lib_dir/setup/ lets it be undone.
 */
#ifndef GPUSHARE_CTL_SETUP_H
#define GPUSHARE_CTL_SETUP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/err.h"
#include "ctl/toml.h"

#define SETUP_HANDLER "gpushare"
#define SETUP_ANNOTATIONS "gpushare.k8s.io/*"
#define SETUP_BEGIN                                                                        \
	"# BEGIN gpushare: written by \"gpusharectl setup\", taken away by \"gpusharectl " \
	"setup --undo\"\n"
#define SETUP_END "# END gpushare\n"

/* The node, and what was asked for. */
struct setup_node {
	const char *root; /* folder of the node's files; "/" as a rule */
	const char *binary; /* gpushare-runtime, as the node sees it */
	const char *config; /* our own configuration, as the node sees it */
	const char *lib_dir; /* where records are kept, as we see it */
	bool make_default; /* for every container, not only for those that name the handler */
	unsigned int containerd; /* its major version where the caller knows it; 0: find out */
	int systemd_cgroup; /* 1 or 0 where the caller knows it; -1: as for runc */
};

/* One file of a plan, or of a record (without @now). */
struct setup_file {
	char *path; /* as the node sees it */
	char *now; /* what is in it; NULL: there is none, here and below */
	char *before, *after; /* what it is without us, and what it is to be */
	struct gs_strv old, new; /* the edits that lead from one to the other, in their order */
};

struct setup_record;

struct setup_plan {
	const struct setup_node *node;
	const char *runtime; /* its name; the record's too */
	struct setup_file *files;
	size_t n;
	struct gs_strv then; /* commands that make it effective */
	struct gs_strv notes; /* what else the operator should know */
	struct setup_record *record; /* of an earlier setup; NULL: none */
};

struct setup_runtime {
	const char *name;
	const char *what; /* for the list of them */
	bool cri; /* serves a kubelet: set up without being named */
	bool (*found)(const struct setup_node *node);
	int (*plan)(struct setup_plan *plan, struct gs_err *err);
	void (*then)(
		struct setup_plan *plan); /* adds what makes a change effective; NULL: nothing */
};

extern const struct setup_runtime setup_containerd, setup_k3s, setup_rke2, setup_crio, setup_docker,
	setup_podman;

/* All of them, ended by NULL. */
extern const struct setup_runtime *const setup_runtimes[];

/* Frees what the plan holds. */
void setup_plan_free(struct setup_plan *plan);
#define cleanup_plan __attribute__((cleanup(setup_plan_free)))

/*
 * Where gpushare-runtime should be on the node: beside this program where that is the node's own,
 * else where packages put it. The caller frees.
 */
char *setup_default_binary(const char *root);

/* ---- Files of a plan (setup_plan.c). */

/*
 * Adds the file to the plan. Its @before and @after are what is in it now, or, where an earlier
 * setup changed it, what it would be without that. The pointer is good until the next call.
 */
int setup_add_file(struct setup_plan *plan, const char *path, struct setup_file **ret,
		   struct gs_err *err);

/* Puts @text into file->after in the place of the bytes from @from to @to. */
void setup_edit(struct setup_file *file, size_t from, size_t to, const char *text);

/* Adds whole lines to its end; makes the file where there is none. */
void setup_append(struct setup_file *file, const char *lines);

/* Makes file->after @text, by an edit of no more lines than differ. */
void setup_replace(struct setup_file *file, const char *text);

/* Reads file->after, with the path before the message. The caller frees. */
int setup_parse(const struct setup_file *file, struct toml *ret, struct gs_err *err);

/* Gives @key of @table (both as in toml.h) the value @value, as TOML writes it. */
int setup_set(struct setup_file *file, const char *table, const char *key, const char *value,
	      struct gs_err *err);

/*
 * @text without the edits @old -> @new; NULL where one of them is not found exactly once. The
 * caller frees.
 */
char *setup_unedit(const char *text, const struct gs_strv *old, const struct gs_strv *new);

/* Does the plan change anything? */
bool setup_changes(const struct setup_plan *plan);

/* ---- The handler in a TOML text (setup_handler.c). */

/* What a text says of one runtime handler. Strings are the text's. */
struct setup_handler {
	bool there;
	const char *binary;
	bool pod_annotations, container_annotations;
	int systemd_cgroup; /* -1: not said */
};

/* Reads the handler in the table @path, of containerd. */
void setup_read_handler(const struct toml *doc, const char *path, struct setup_handler *ret);

/* What is wrong with it for @binary, as a sentence to be freed; NULL: nothing. */
char *setup_handler_wrong(const struct setup_handler *handler, const char *binary);

/*
 * Appends containerd's handler below @cri ("plugins.\"...\"") with what @runc (may be NULL) says of
 * the table @runc_path besides: snapshotter, base spec and the like are the node's, not the
 * runtime's.
 */
void setup_write_handler(const struct setup_node *node, const char *cri, const struct toml *runc,
			 const char *systemd_cgroup, struct gs_buf *out);

/* "true" or "false": what the node, or else @doc (may be NULL), says of runc's SystemdCgroup. */
const char *setup_cgroup_word(const struct setup_node *node, const char *cri,
			      const struct toml *doc);

/* The plugin that serves the kubelet, by version of containerd's configuration. */
const char *setup_cri_table(unsigned int version);

/* The whole number at "version"; 0: there is none. */
unsigned int setup_version(const struct toml *doc);

/* Does disabled_plugins name the plugin that serves the kubelet? */
bool setup_cri_disabled(const struct toml *doc);

/* ---- Records (setup_record.c). */

/* -ENOENT: there is none. */
int setup_record_load(const struct setup_node *node, const char *runtime, struct setup_record **ret,
		      struct gs_err *err);
void setup_record_free(struct setup_record *record);

/* The file in it, or NULL. */
const struct setup_file *setup_record_file(const struct setup_record *record, const char *path);

/* Carries the plan out: record and backups first. On an error everything is as it was. */
int setup_apply(struct setup_plan *plan, struct gs_err *err);

/* The plan that undoes the record; -EBUSY: an undo would lose what was edited since. */
int setup_undo_plan(struct setup_plan *plan, struct gs_err *err);

/* Carries that out, and removes backups, folders and record. */
int setup_undo(struct setup_plan *plan, struct gs_err *err);

#endif
