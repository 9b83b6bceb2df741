/** Builds HTTP responses for pages and their files. */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { PageFile } from '../http/response.ts'

export type Page = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void

export type Headers = Readonly<Record<string, string>>

export const commonHeaders: Headers = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}

/** Prevents a file from running scripts or loading resources if a browser opens it as a page. */
export const filePolicy = "default-src 'none'; frame-ancestors 'none'"

export function writePage(
  { method }: IncomingMessage,
  response: ServerResponse,
  headers: Headers,
  body: Buffer,
): void {
  response.writeHead(200, { ...headers, 'Content-Length': String(body.length) })
  response.end(method === 'HEAD' ? undefined : body)
}

export function createFilePage({ body, headers }: PageFile): Page {
  if ('text' in body) {
    const bytes = Buffer.from(body.text)
    return (request, response) => writePage(request, response, headers, bytes)
  }
  const path = join(body.folder, body.name)
  return async (request, response) => writePage(request, response, headers, await readFile(path))
}
