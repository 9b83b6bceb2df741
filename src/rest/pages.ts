/** The headers of pages that people open, and the files such pages are made of. */
import { watchFiles } from '../artifacts/watch/files.ts'
import { noStore, securityHeaders } from './headers.ts'

/** One file of a page: what to send, and every header it needs. */
export interface PageFile {
  /** Text kept in memory, or a file of an installed package that is streamed from disk. */
  readonly body: { readonly text: string } | { readonly folder: string; readonly name: string }
  readonly headers: Readonly<Record<string, string>>
}

/** For what never changes under its address. */
export const IMMUTABLE = 'public, max-age=31536000, immutable'

export const pageHeaders: readonly string[] = ['Content-Type', 'text/html; charset=utf-8', ...noStore]

/** As for every answer, but the page may use what comes from here. Security: 2.7. */
export const pageSecurityHeaders: readonly string[] = securityHeaders.with(
  securityHeaders.indexOf('Content-Security-Policy') + 1,
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
)

/** What the waiting page asks for, by its address. */
export const watchPages: ReadonlyMap<string, PageFile> = new Map(
  Object.values(watchFiles).map(({ name, mediaType, text }) => [
    `/artifacts/${name}`,
    {
      body: { text },
      headers: {
        'Content-Type': `${mediaType}; charset=utf-8`,
        'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
        'X-Content-Type-Options': 'nosniff',
        'Referrer-Policy': 'no-referrer',
        'Cache-Control': IMMUTABLE,
        'Protocol-Version': '2',
      },
    },
  ]),
)
