/** Builds multipart forms, uploads and downloads files, and lists stored files. */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MARK } from '../../src/storage/mark.ts'
import type { TestApp } from './app.ts'

/** A part of a form; `disposition` is the raw text after `form-data`. */
export interface Part {
  readonly disposition: string | Buffer
  readonly headers?: readonly string[]
  readonly body: string | Buffer
}

export const BOUNDARY = 'parley-test-boundary'
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

export function field(name: string, body: string): Part {
  return { disposition: `name="${name}"`, body }
}

/** Builds a file part; the file name is not escaped. */
export function filePart(body: string | Buffer = 'hello', filename: string | Buffer = 'hello.txt'): Part {
  const disposition = Buffer.concat([
    Buffer.from('name="file"; filename="'),
    Buffer.from(filename),
    Buffer.from('"'),
  ])
  return { disposition, headers: ['Content-Type: application/octet-stream'], body }
}

export const purpose = field('purpose', 'assistants')

/** Returns a part's boundary and headers. */
export function partHead({ disposition, headers = [] }: Omit<Part, 'body'>): Buffer {
  const rest = headers.map((header) => `\r\n${header}`).join('')
  return Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; `),
    Buffer.from(disposition),
    Buffer.from(`${rest}\r\n\r\n`),
  ])
}

export const formEnd = `--${BOUNDARY}--\r\n`

export function toForm(parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap((part) => [partHead(part), Buffer.from(part.body), Buffer.from('\r\n')])
  return Buffer.concat([...pieces, Buffer.from(formEnd)])
}

/** Returns a stream of chunks, so that `fetch` does not declare a length. */
export function toChunkStream(bytes: Buffer, size = bytes.length): ReadableStream {
  let sent = 0
  return new ReadableStream({
    pull(controller) {
      if (sent >= bytes.length) return controller.close()
      controller.enqueue(bytes.subarray(sent, sent + size))
      sent += size
    },
  })
}

export interface UploadAnswer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any
}

export async function postFiles(
  app: Pick<TestApp, 'url' | 'key' | 'fetch'>,
  body: Buffer | ReadableStream,
  headers: Readonly<Record<string, string>> = {},
): Promise<UploadAnswer> {
  const response = await app.fetch(`${app.url}/v1/files`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${app.key}`, 'Content-Type': FORM_TYPE, ...headers },
    body,
    duplex: 'half',
  } as RequestInit)
  return { status: response.status, headers: response.headers, body: await response.json() }
}

/** Uploads a form; by default with a `file` and a `purpose`. */
export function upload(
  app: Pick<TestApp, 'url' | 'key' | 'fetch'>,
  parts: readonly Part[] = [filePart(), purpose],
  headers?: Readonly<Record<string, string>>,
): Promise<UploadAnswer> {
  return postFiles(app, toForm(parts), headers)
}

export function download(
  app: Pick<TestApp, 'url' | 'key' | 'fetch'>,
  id: string,
  init: { method?: string; headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> {
  return app.fetch(`${app.url}/v1/files/${id}/content`, {
    ...init,
    headers: { Authorization: `Bearer ${app.key}`, ...init.headers },
  })
}

/** Lists the names of the committed and the staged files in a data directory. */
export async function listStored(dataDir: string): Promise<{ kept: string[]; incoming: string[] }> {
  const entries = await readdir(join(dataDir, 'files'), { withFileTypes: true })
  return {
    kept: entries.filter((entry) => entry.isFile() && entry.name !== MARK).map(({ name }) => name),
    incoming: await readdir(join(dataDir, 'files', 'incoming')),
  }
}
