// SPDX-License-Identifier: Apache-2.0
/* Fences privileged targets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/glob.h"
#include "common/xalloc.h"
#include "runtime/fence.h"

/* CHRDEV_MAJOR_MAX of the kernel's fs/char_dev.c: no character device has a larger major. */
#define CHAR_MAJORS 512
/* Folders of /dev are few and flat. */
#define DEV_DEPTH_MAX 4
/* Far more than a node has. */
#define NODES_MAX 65536

/* One character device of the host or of the spec. */
struct node {
	unsigned int major, minor;
	bool vendor; /* the catalogue names it */
};

struct survey {
	const struct gs_catalogue *cat;
	struct node *nodes;
	size_t n;
	bool fenced[CHAR_MAJORS]; /* a vendor has nodes of this major */
};

static void add_node(struct survey *s, const char *path, unsigned int major, unsigned int minor)
{
	const struct gs_node *node;
	bool vendor;

	if (major >= CHAR_MAJORS)
		return;
	vendor = gs_catalogue_node(s->cat, path, major, minor, &node);
	if (vendor)
		s->fenced[major] = true;
	s->nodes = gs_grow(s->nodes, s->n, sizeof(*s->nodes));
	s->nodes[s->n++] = (struct node){ major, minor, vendor };
}

/*
 * A folder below /dev that everybody may write to (shm, mqueue): pods make nodes and thousands of
 * folders there, and no node in there says anything about a card. Terminals and memory: many
 * entries, no cards.
 */
static bool is_passed_over(int fd, const char *path)
{
	struct stat st;

	return fstat(fd, &st) < 0 || (st.st_mode & S_IWOTH) || strcmp(path, "/dev/pts") == 0 ||
	       strncmp(path, "/dev/hugepages", 14) == 0;
}

/* Every character device below @path. False: /dev can't be read, or holds more than we look at. */
static bool walk_dev(struct survey *s, int parent, const char *name, const char *path, int depth)
{
	cleanup_dir DIR *dir = gs_opendirat(parent, name);
	struct dirent *e;
	bool ok = true;

	if (!dir)
		return depth > 0; /* a folder that went away is none to open nodes in */
	if (depth > 0 && is_passed_over(dirfd(dir), path))
		return true;
	while (ok && (e = readdir(dir)) != NULL) {
		cleanup_free char *sub = NULL;
		struct stat st;

		if (e->d_name[0] == '.' || (e->d_type != DT_CHR && e->d_type != DT_DIR))
			continue;
		sub = gs_asprintf("%s/%s", path, e->d_name);
		if (e->d_type == DT_DIR)
			ok = depth == DEV_DEPTH_MAX ||
			     walk_dev(s, dirfd(dir), e->d_name, sub, depth + 1);
		else if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			add_node(s, sub, major(st.st_rdev), minor(st.st_rdev));
		ok = ok && s->n < NODES_MAX;
	}
	return ok;
}

static bool is_vendor_chrdev(const struct gs_catalogue *cat, const char *name)
{
	for (size_t i = 0; i < cat->n; i++)
		for (size_t j = 0; j < cat->v[i].chrdevs.n; j++)
			if (gs_glob_match_across(cat->v[i].chrdevs.v[j], name))
				return true;
	return false;
}

/* Majors of vendors' drivers that have no node yet: CAP_MKNOD makes one. */
static void read_proc_devices(struct survey *s)
{
	cleanup_free char *text = NULL;
	char *line, *save = NULL;
	size_t len;

	if (gs_file_read(AT_FDCWD, "/proc/devices", 0, 65536, &text, &len, NULL, NULL) < 0)
		return;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *name;
		unsigned long major = strtoul(line, &name, 10);

		if (strcmp(line, "Block devices:") == 0)
			break;
		if (name == line || *name != ' ' || major >= CHAR_MAJORS)
			continue;
		if (is_vendor_chrdev(s->cat, name + 1))
			s->fenced[major] = true;
	}
}

static void add_rule(struct rewrite *rw, char type, int64_t major, int64_t minor,
		     unsigned int access)
{
	cleanup_buf struct gs_buf rule = { 0 };

	if (!access)
		return;
	slice_add_rule(&rule, type, major, minor, access);
	js_array_append(&rw->rules, rule.data);
}

/* Block devices stay as the target's own rules had them: cards are none of them. */
static void keep_block_rules(struct rewrite *rw)
{
	const struct spec *spec = rw->spec;
	size_t start = 0;

	for (size_t i = 0; i < spec->n_rules; i++)
		if (spec->rule[i].type == 'a')
			start = i + 1; /* it overrules what stands before it */
	add_rule(rw, 'b', RULE_ANY, RULE_ANY, spec_default_access(spec, 'b'));
	for (size_t i = start; i < spec->n_rules; i++) {
		const struct spec_rule *rule = &spec->rule[i];
		cleanup_free char *raw = NULL;

		if (rule->type != 'b' || (rule->major == RULE_ANY && rule->minor == RULE_ANY))
			continue;
		raw = gs_strndup(rule->raw.p, rule->raw.n);
		js_array_append(&rw->rules, raw);
	}
}

/* A rule of the target's own takes something of this major away: only what it leaves stays. */
static bool denies_in(const struct spec *spec, int64_t major)
{
	for (size_t i = 0; i < spec->n_rules; i++)
		if (!spec->rule[i].allow && spec->rule[i].type == 'c' &&
		    spec->rule[i].major == major)
			return true;
	return false;
}

static int by_number(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->major != y->major)
		return x->major < y->major ? -1 : 1;
	if (x->minor != y->minor)
		return x->minor < y->minor ? -1 : 1;
	return (int)y->vendor - (int)x->vendor; /* a vendor's path first: it decides */
}

static bool is_granted(const struct granted_list *granted, int64_t major, int64_t minor)
{
	for (size_t i = 0; i < granted->n; i++)
		if (granted->v[i].type == 'c' && granted->v[i].major == major &&
		    granted->v[i].minor == minor)
			return true;
	return false;
}

/* The rules of one fenced major: the sources' devices, and the host's that are no vendor's. */
static void allow_some(struct rewrite *rw, const struct survey *s,
		       const struct granted_list *granted, unsigned int major)
{
	for (size_t i = 0; i < granted->n; i++)
		if (granted->v[i].type == 'c' && granted->v[i].major == (int64_t)major)
			add_rule(rw, 'c', major, granted->v[i].minor, granted->v[i].access);
	for (size_t i = 0; i < s->n; i++) {
		const struct node *n = &s->nodes[i];
		unsigned int access = spec_rules_access(rw->spec, 'c', n->major, n->minor);
		bool repeat = i > 0 && n[-1].major == n->major && n[-1].minor == n->minor;

		if (n->major != major || n->vendor || repeat || !access ||
		    is_granted(granted, n->major, n->minor))
			continue;
		add_rule(rw, 'c', n->major, n->minor, access);
	}
}

/* Devices of the spec that the catalogue names and no source gives. */
static void drop_devices(struct rewrite *rw, const struct survey *s,
			 const struct granted_list *granted)
{
	for (size_t i = 0; i < rw->spec->n_devices; i++) {
		const struct spec_device *d = &rw->spec->device[i];
		bool vendor = false;

		if (d->type != 'c' || is_granted(granted, d->major, d->minor))
			continue;
		/* by number, whatever path it has here: a neighbour's card under another name */
		for (size_t j = 0; j < s->n && !vendor; j++)
			vendor = s->nodes[j].vendor && s->nodes[j].major == d->major &&
				 s->nodes[j].minor == d->minor;
		if (vendor)
			js_array_drop(&rw->devices, i);
	}
}

int fence(struct rewrite *rw, const struct gs_catalogue *cat, const struct granted_list *granted,
	  struct gs_err *err)
{
	struct survey s = { .cat = cat };

	if (!spec_allows_all(rw->spec))
		return 0;
	/* a fence with holes that nobody knows of is worse than a container that is made later */
	if (!walk_dev(&s, AT_FDCWD, "/dev", "/dev", 0)) {
		free(s.nodes);
		return gs_err_set(err, EIO,
				  "a privileged container can't be fenced: the host's /dev is not "
				  "to be read, or has more than %d nodes",
				  NODES_MAX);
	}
	for (size_t i = 0; i < rw->spec->n_devices; i++) {
		const struct spec_device *d = &rw->spec->device[i];

		if (d->type == 'c' && d->major >= 0 && d->minor >= 0 && d->minor <= UINT32_MAX)
			add_node(&s, d->path, (unsigned int)d->major, (unsigned int)d->minor);
	}
	read_proc_devices(&s);
	if (s.n)
		qsort(s.nodes, s.n, sizeof(*s.nodes), by_number);

	drop_devices(rw, &s, granted);
	js_array_clear(&rw->rules); /* what inject() added stands in the list below */
	js_array_append(&rw->rules, "{\"allow\":false,\"access\":\"rwm\"}");
	keep_block_rules(rw);
	for (unsigned int major = 0; major < CHAR_MAJORS; major++) {
		if (s.fenced[major] || denies_in(rw->spec, major))
			allow_some(rw, &s, granted, major);
		else
			add_rule(rw, 'c', major, RULE_ANY, spec_default_access(rw->spec, 'c'));
	}
	free(s.nodes);
	return 0;
}
