/** Builds well-formed keys that a service has not issued. */
import { crc32 } from 'node:zlib'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns `prefix`, `middle` and a valid checksum. */
export function forgeKey(prefix: string, middle: string): string {
  const body = prefix + middle
  let rest = crc32(body)
  let checksum = ''
  while (checksum.length < 6) {
    checksum = BASE62[rest % 62] + checksum
    rest = Math.floor(rest / 62)
  }
  return body + checksum
}
