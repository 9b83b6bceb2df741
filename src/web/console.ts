/** What is served under `/console`: the console's files, and one document for every address of its pages. Security: 2.7. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Random } from '../lib/ids.ts'
import { type ConsoleAssets, type ConsoleFile, renderConsole, renderConsolePolicy } from './console-assets.ts'
import type { Page } from './widget.ts'

const NONCE_BYTES = 16

const common = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' } as const

/** Every file of the console with what answers there. */
export function createConsoleFiles({ files }: ConsoleAssets): ReadonlyMap<string, Page> {
  return new Map(files.map((file) => [file.path, filePage(file)]))
}

function filePage({ path, body, brotli }: ConsoleFile): Page {
  const headers = {
    ...common,
    'Content-Type': `${path.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`,
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': 'public, max-age=31536000, immutable',
    Vary: 'Accept-Encoding',
  }
  return (request, response) => {
    const isSmall = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))
    const sent = isSmall ? brotli : body
    const encoding: Record<string, string> = isSmall ? { 'Content-Encoding': 'br' } : {}
    write(request, response, { ...headers, ...encoding }, sent)
  }
}

/** The document, with a nonce of its own each time. */
export function createConsolePage({ random }: { readonly random: Random }, assets: ConsoleAssets): Page {
  return (request, response) => {
    const nonce = Buffer.from(random(NONCE_BYTES)).toString('base64')
    const headers = {
      ...common,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': renderConsolePolicy(nonce),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cache-Control': 'no-store',
    }
    write(request, response, headers, Buffer.from(renderConsole(assets, nonce)))
  }
}

function write(
  { method }: IncomingMessage,
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): void {
  response.writeHead(200, { ...headers, 'Content-Length': String(body.length) })
  response.end(method === 'HEAD' ? undefined : body)
}
