// SPDX-License-Identifier: Apache-2.0
/* The bearer token. The kubelet replaces the file of a service account long before it runs out. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "kube/impl.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

#define TOKEN_MAX (64 << 10)

void kube_token_forget(struct kube *kube)
{
	if (kube->token.text)
		explicit_bzero(kube->token.text, strlen(kube->token.text));
	free(gs_steal(kube->token.text));
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int kube_token(struct kube *kube, const char **ret, struct gs_err *err)
{
	const char *path = kube->config.token_file;
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len;
	int r;

	if (kube->token.text && stat(path, &st) == 0 && same(&st, &kube->token.st)) {
		*ret = kube->token.text;
		return 0;
	}
	r = gs_file_read(AT_FDCWD, path, 0, TOKEN_MAX, &text, &len, &st, err);
	if (r < 0)
		return r;
	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	if (len == 0)
		return gs_err_set(err, EINVAL, "%s: no token in it", path);
	/* It becomes a header's line: nothing in it may end that. */
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] == 0x7f)
			return gs_err_set(err, EINVAL, "%s: no token: white space within", path);
	kube_token_forget(kube);
	kube->token.text = gs_asprintf("Authorization: Bearer %s", text);
	kube->token.st = st;
	explicit_bzero(text, len);
	*ret = kube->token.text;
	return 0;
}
