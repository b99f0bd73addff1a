// SPDX-License-Identifier: Apache-2.0
/* What the probe reads of /sys, /proc and /dev. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/glob.h"
#include "common/xalloc.h"

/* A file of one value; sysfs files are a page at most. */
#define VALUE_MAX 65536
#define FOUND_MAX 65536
#define VISITED_MAX 1000000

char *probe_path(const char *path)
{
	const char *root = getenv(PROBE_ROOT_ENV);

	return gs_asprintf("%s%s", root ? root : "", path);
}

const char *probe_host(void)
{
	const char *host = getenv(PROBE_HOST_ENV);

	return host && host[0] == '/' ? host : NULL;
}

struct walk {
	const char *glob;
	struct gs_strv *found;
	size_t visited;
};

static int too_many(const struct walk *walk, struct gs_err *err)
{
	return gs_err_set(err, E2BIG, "%s matches among too many files", walk->glob);
}

/*
 * Looks at what is in @dir and, as far as the pattern has more parts, below. The pattern is matched
 * as a whole, because its braces may hold '/'. Links are followed: sysfs is made of them, and the
 * pattern's length bounds the depth.
 */
static int walk_dir(struct walk *walk, const char *dir, unsigned int depth, struct gs_err *err)
{
	cleanup_free char *real = probe_path(dir);
	cleanup_dir DIR *d = opendir(real);
	struct dirent *e;
	int r = 0;

	if (!d)
		return 0;
	while (r == 0 && (e = readdir(d))) {
		cleanup_free char *path = NULL;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (++walk->visited > VISITED_MAX)
			return too_many(walk, err);
		path = gs_asprintf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, e->d_name);
		if (gs_glob_match(walk->glob, path)) {
			if (walk->found->n == FOUND_MAX)
				return too_many(walk, err);
			gs_strv_add(walk->found, path);
		}
		if (depth && (e->d_type == DT_DIR || e->d_type == DT_LNK))
			r = walk_dir(walk, path, depth - 1, err);
	}
	return r;
}

int probe_glob(const char *glob, struct gs_strv *ret, struct gs_err *err)
{
	cleanup_strv struct gs_strv found = { 0 };
	struct walk walk = { glob, &found, 0 };
	cleanup_buf struct gs_buf plain = { 0 };
	const char *s, *rest = glob;
	unsigned int depth = 0;
	char *slash;
	int r;

	/* What stands for itself, up to the last '/' before the first part that does not. */
	for (s = glob; *s && !strchr("*?[]{},", *s); s++) {
		if (*s == '\\' && s[1])
			s++;
		if (*s == '/')
			rest = s + 1;
		gs_buf_addc(&plain, *s);
	}
	slash = plain.data ? strrchr(plain.data, '/') : NULL;
	if (!slash)
		return gs_err_set(err, EINVAL, "%s is no absolute path", glob);
	if (slash == plain.data)
		slash++;
	*slash = '\0';
	for (s = rest; *s; s++)
		depth += *s == '/';
	r = walk_dir(&walk, plain.data, depth, err);
	if (r < 0)
		return r;
	gs_strv_sort(&found);
	gs_strv_free(ret);
	*ret = found;
	found = (struct gs_strv){ 0 };
	return 0;
}

int probe_line(const char *path, char **ret, struct gs_err *err)
{
	cleanup_free char *real = probe_path(path), *text = NULL;
	char *start, *end;
	size_t len;
	int r = gs_file_read(AT_FDCWD, real, 0, VALUE_MAX, &text, &len, NULL, err);

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	start = text + strspn(text, " \t\r");
	for (end = start + strlen(start); end > start && isspace((unsigned char)end[-1]); end--)
		;
	*ret = gs_strndup(start, (size_t)(end - start));
	return 0;
}

int probe_number(const char *path, double *ret, struct gs_err *err)
{
	cleanup_free char *line = NULL;
	char *end;
	double n;
	int r = probe_line(path, &line, err);

	if (r < 0)
		return r;
	n = strtod(line, &end);
	end += strspn(end, " %");
	if (end == line || *end || !isfinite(n) || n < 0)
		return gs_err_set(err, EPROTO, "%s holds no number but \"%.40s\"", path, line);
	*ret = n;
	return 0;
}

/* <domain>:<bus>:<device>.<function>, in hex; a domain may have more than four digits. */
static bool is_pci(const char *s, size_t len)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	size_t domain = strspn(s, hex);

	return domain >= 4 && len == domain + 8 && s[domain] == ':' &&
	       strspn(s + domain + 1, hex) == 2 && s[domain + 3] == ':' &&
	       strspn(s + domain + 4, hex) == 2 && s[domain + 6] == '.' &&
	       strspn(s + domain + 7, "01234567") == 1;
}

char *probe_pci_of(const char *folder)
{
	cleanup_free char *path = probe_path(folder), *real = realpath(path, NULL);
	char *ret = NULL;

	/* The folder may be a class device's, below the card's own. */
	for (const char *s = real; s && *s;) {
		size_t len = strcspn(s, "/");

		if (is_pci(s, len)) {
			free(ret);
			ret = gs_strndup(s, len);
		}
		s += len + (s[len] == '/');
	}
	return ret;
}

char *probe_pci_folder(const char *pci)
{
	cleanup_free char *folder = gs_asprintf("/sys/bus/pci/devices/%s", pci);
	cleanup_free char *real = probe_path(folder);

	return is_pci(pci, strlen(pci)) && access(real, F_OK) == 0 ? gs_steal(folder) : NULL;
}

bool probe_driver_there(const struct vendor_side *side)
{
	const struct gs_strv *names = &vendor_side_rules(side)->chrdevs;
	cleanup_free char *path = probe_path("/proc/devices"), *text = NULL;
	char *line, *save = NULL;
	size_t len;

	if (gs_file_read(AT_FDCWD, path, 0, VALUE_MAX, &text, &len, NULL, NULL) < 0)
		return false;
	/* "195 nvidia", up to "Block devices:" */
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *name = line + strspn(line, " 0123456789");

		if (strcmp(line, "Block devices:") == 0)
			break;
		for (size_t i = 0; i < names->n; i++)
			if (gs_glob_match_across(names->v[i], name))
				return true;
	}
	return false;
}
