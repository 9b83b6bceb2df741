/** Finds out what bytes are. */

/** What the bytes are, by their beginning (`HEAD_BYTES` of it); nothing a sender says is believed. Security: 2.7. */
export async function sniff(head: Uint8Array): Promise<string> {
  // Loaded with the first upload: a start has no use for it.
  const { fileTypeFromBuffer } = await import('file-type')
  // A beginning that breaks the detector is nothing known either.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found?.mime ?? 'application/octet-stream'
}
