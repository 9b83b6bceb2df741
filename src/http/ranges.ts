/**
 * Evaluates conditional and range requests (RFC 9110, sections 13 and 14), because the `range-parser` package
 * mishandles suffixes and invalid ranges.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { ServiceError } from '../lib/errors.ts'

/**
 * The part of the content to send: nothing (304), everything (200), or the bytes from `start` to `end`,
 * inclusive (206).
 */
export type Portion =
  | { readonly status: 200 | 304 }
  | { readonly status: 206; readonly start: number; readonly end: number }

export function choosePortion(
  method: string,
  headers: IncomingHttpHeaders,
  { sizeBytes, entityTag }: { readonly sizeBytes: number; readonly entityTag: string },
): Portion {
  const known = headers['if-none-match']
  if (known !== undefined && matchesTag(known, entityTag)) return { status: 304 }
  // A server must ignore `Range` for methods other than GET (RFC 9110, section 14.2).
  if (method !== 'GET' || headers.range === undefined) return { status: 200 }
  // Requires a strong match. A date never matches, because the server does not send `Last-Modified`.
  const base = headers['if-range']
  if (base !== undefined && base !== entityTag) return { status: 200 }
  return chooseRange(headers.range, sizeBytes)
}

/** Compares weakly, as RFC 9110 requires for `If-None-Match` (section 13.1.2). */
export function matchesTag(header: string, entityTag: string): boolean {
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return tags.includes('*') || tags.includes(entityTag)
}

/** Ignores malformed ranges, other units and multiple ranges, as RFC 9110 allows. */
function chooseRange(header: string, sizeBytes: number): Portion {
  const [, first, last] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return { status: 200 }
  // A suffix longer than the content selects all of it (RFC 9110, section 14.1.2).
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first)
  const end = first === '' || last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1)
  if (first !== '' && last !== '' && Number(last) < Number(first)) return { status: 200 }
  if (start >= sizeBytes) {
    throw new ServiceError(
      'range_not_satisfiable',
      `Range: must be within the content, which has ${sizeBytes} bytes`,
    )
  }
  return { status: 206, start, end }
}

export interface ByteRange {
  readonly start: number
  readonly end: number
}
