/** Serves a page on another origin that uploads with Uppy. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Uppy from '@uppy/core'
import type Tus from '@uppy/tus'
import { build } from 'rolldown'
import { onTestFinished } from 'vitest'

/** The globals that the page's script sets. */
export interface UppyWindow {
  readonly Uppy: typeof Uppy
  readonly Tus: typeof Tus
  /** Creates a file whose content is `toPattern(sizeBytes)`. */
  createFile(sizeBytes: number): File
}

const entry = `
  import Uppy from '@uppy/core'
  import Tus from '@uppy/tus'
  const toPattern = ${toPattern}
  const createFile = (size) => new File([toPattern(size)], 'clip.mp4', { type: 'video/mp4', lastModified: 1 })
  Object.assign(window, { Uppy, Tus, createFile })
`

/** Generates a byte pattern. Must not use this file's variables, because it also runs in the page. */
export function toPattern(sizeBytes: number): Uint8Array<ArrayBuffer> {
  const words = Uint32Array.from({ length: Math.ceil(sizeBytes / 4) }, (_, place) =>
    Math.imul(place, 2_654_435_761),
  )
  return new Uint8Array(words.buffer).slice(0, sizeBytes)
}

let bundling: Promise<string> | undefined

async function bundle(): Promise<string> {
  const { output } = await build({
    input: 'page',
    platform: 'browser',
    write: false,
    output: { format: 'iife' },
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === 'page' ? id : null),
        load: (id) => (id === 'page' ? entry : null),
      },
    ],
  })
  return output[0].code
}

/** Serves the page until the test ends; returns its URL. */
export async function serveUppyPage(): Promise<string> {
  bundling ??= bundle()
  const script = await bundling
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? script : '<!doctype html><script src="/page.js"></script>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
