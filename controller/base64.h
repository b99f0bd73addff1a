/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648), as the Kubernetes API carries bytes in JSON; GnuTLS does it. */
#ifndef GPUSHARE_CONTROLLER_BASE64_H
#define GPUSHARE_CONTROLLER_BASE64_H

/* Encodes a text. The caller frees. */
char *base64_encode(const char *text);

/* Decodes one; NULL where @text is NULL, is none, or holds a NUL. The caller frees. */
char *base64_decode(const char *text);

#endif
