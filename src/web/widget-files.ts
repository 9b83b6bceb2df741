/** Reads the widget's built files, and serves them compressed to pages from any origin. */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { matchesTag } from '../http/ranges.ts'
import { StartupError } from '../lib/errors.ts'
import { commonHeaders, filePolicy, type Headers, type Page, writePage } from './page.ts'

const Part = z.object({
  file: z.string().regex(/^[a-z]+-[0-9a-f]{12}\.(js|css)$/),
  integrity: z.string().startsWith('sha384-'),
})

/** The manifest that `scripts/build-widget.ts` writes. */
const Manifest = z.object({
  extras: Part,
  loader: Part,
  frameScript: Part,
  frameWorker: Part,
  frameStyle: Part,
  demoScript: Part,
  demoStyle: Part,
  previewScript: Part,
  previewStyle: Part,
  /** The parts that the frame and its worker load on demand. */
  frameChunks: z.array(Part),
})
type PartName = Exclude<keyof z.infer<typeof Manifest>, 'frameChunks'>

export interface WidgetPart {
  /** Contains a content hash, so the file at this path never changes. */
  readonly path: string
  readonly integrity: string
  readonly body: Buffer
  /** The body in each encoding, best first. Browsers accept brotli only over HTTPS. */
  readonly encoded: readonly (readonly [encoding: 'br' | 'gzip', body: Buffer])[]
}

export type WidgetAssets = Readonly<Record<PartName, WidgetPart>> & {
  readonly frameChunks: readonly WidgetPart[]
}

const builtFolder = new URL('../../dist/widget/', import.meta.url)

export async function loadWidget(folder: URL = builtFolder): Promise<WidgetAssets> {
  try {
    const { frameChunks, ...named } = Manifest.parse(
      JSON.parse(await readFile(new URL('manifest.json', folder), 'utf8')),
    )
    const parts = Object.entries(named).map(async ([name, part]) => [name, await loadPart(folder, part)])
    const chunks = await Promise.all(frameChunks.map((part) => loadPart(folder, part)))
    return { ...Object.fromEntries(await Promise.all(parts)), frameChunks: chunks } as WidgetAssets
  } catch (cause) {
    const path = fileURLToPath(folder)
    throw new StartupError(`The chat widget has not been built in ${path}; run \`npm run build\`.`, { cause })
  }
}

async function loadPart(folder: URL, { file, integrity }: z.infer<typeof Part>): Promise<WidgetPart> {
  const read = (extension: string) => readFile(new URL(file + extension, folder))
  const body = await read('')
  const encoded: WidgetPart['encoded'] = [
    ['br', await read('.br')],
    // Compressed here, because gzip files in the build would make the package a twelfth larger.
    ['gzip', await promisify(gzip)(body, { level: 9 })],
  ]
  return { path: `/embed/${file}`, integrity, body, encoded }
}

/** `Cache-Control` of scripts whose paths do not change, such as the loader and `extras.js`. */
export const LOADER_CACHE = 'public, max-age=300'

/**
 * Lets pages from any origin load these files, even with `integrity` or under `Cross-Origin-Embedder-Policy`.
 */
export const crossOriginHeaders: Headers = {
  ...commonHeaders,
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Access-Control-Allow-Origin': '*',
  // The frame's worker needs the same policy as the frame.
  'Cross-Origin-Embedder-Policy': 'require-corp',
  Vary: 'Accept-Encoding',
}

export function filePage(
  { path, body, encoded, integrity }: WidgetPart,
  cacheControl: string,
  policy = filePolicy,
): Page {
  const mediaType = path.endsWith('.css') ? 'text/css' : 'text/javascript'
  const headers = {
    ...crossOriginHeaders,
    'Content-Security-Policy': policy,
    'Content-Type': `${mediaType}; charset=utf-8`,
    'Cache-Control': cacheControl,
  }
  return (request, response) => {
    const [encoding, sent] = encoded.find(([name]) => acceptsEncoding(request, name)) ?? ['', body]
    const entityTag = encoding === '' ? `"${integrity}"` : `"${integrity}-${encoding}"`
    const all = { ...headers, ETag: entityTag, ...(encoding !== '' && { 'Content-Encoding': encoding }) }
    const known = request.headers['if-none-match']
    if (known !== undefined && matchesTag(known, entityTag)) response.writeHead(304, all).end()
    else writePage(request, response, all, sent)
  }
}

function acceptsEncoding({ headers }: IncomingMessage, encoding: string): boolean {
  const accepted = String(headers['accept-encoding'] ?? '').split(',')
  return accepted.some((one) => {
    const [name = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase())
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

/** Caches compressed scripts by their text, because themes rarely change. */
const compressed = new LRUCache<string, Buffer>({ max: 200 })

/** Sends a script that the server has generated for this request. */
export function writeScript(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  shared = crossOriginHeaders,
): void {
  const digest = hash('sha256', body, 'hex').slice(0, 16)
  const encoding = (['br', 'gzip'] as const).find((name) => acceptsEncoding(request, name))
  const entityTag = `"${digest}-${encoding ?? 'identity'}"`
  const headers = {
    ...shared,
    'Content-Type': 'text/javascript; charset=utf-8',
    'Cache-Control': LOADER_CACHE,
    ETag: entityTag,
    ...(encoding !== undefined && { 'Content-Encoding': encoding }),
  }
  const known = request.headers['if-none-match']
  if (known !== undefined && matchesTag(known, entityTag)) return void response.writeHead(304, headers).end()
  const sent = encoding === undefined ? body : compress(entityTag, encoding, body)
  writePage(request, response, headers, sent)
}

function compress(name: string, encoding: 'br' | 'gzip', body: Buffer): Buffer {
  const known = compressed.get(name)
  if (known !== undefined) return known
  const made =
    encoding === 'br'
      ? brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
      : gzipSync(body)
  compressed.set(name, made)
  return made
}
