/** The files the waiting page is made of besides its HTML, each at an address that changes with its bytes. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export interface StatusPageFile {
  /** Below `/artifacts/`. */
  readonly name: string
  readonly mediaType: string
  readonly text: string
}

export const statusPageFiles = {
  script: readStatusPageFile('status.js', 'text/javascript'),
  style: readStatusPageFile('status.css', 'text/css'),
  icon: readStatusPageFile('icon.svg', 'image/svg+xml'),
} as const

function readStatusPageFile(source: string, mediaType: string): StatusPageFile {
  const text = readFileSync(new URL(source, import.meta.url), 'utf8')
  const [stem, extension] = source.split('.')
  return { name: `${stem}-${hash('sha256', text, 'hex').slice(0, 16)}.${extension}`, mediaType, text }
}
