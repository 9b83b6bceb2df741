/** The files the waiting page is made of besides its HTML, each at an address that changes with its bytes. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export interface WatchFile {
  /** Below `/artifacts/`. */
  readonly name: string
  readonly mediaType: string
  readonly text: string
}

export const watchFiles = {
  script: readWatchFile('status.js', 'text/javascript'),
  style: readWatchFile('status.css', 'text/css'),
  icon: readWatchFile('icon.svg', 'image/svg+xml'),
} as const

function readWatchFile(source: string, mediaType: string): WatchFile {
  const text = readFileSync(new URL(source, import.meta.url), 'utf8')
  const [stem, extension] = source.split('.')
  return { name: `${stem}-${hash('sha256', text, 'hex').slice(0, 16)}.${extension}`, mediaType, text }
}
