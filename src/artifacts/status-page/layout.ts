/** The HTML frame of the status page, its assets, and the page for a failed request. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ServiceError } from '../../lib/errors.ts'
import { type Html, html } from '../../lib/html.ts'
import { Page } from '../../operations/operation.ts'

/** The parts of the page; its script replaces them with those of a newer page. */
export interface Pieces {
  readonly state: string
  readonly isFollowed: boolean
  /** Seconds until a browser without JavaScript reloads the page. */
  readonly refreshSeconds: number | undefined
  readonly title: string
  readonly heading: Html
  readonly says: string
  readonly progress?: Html | undefined
  readonly content?: Html | undefined
  readonly facts: readonly Html[]
}

const RETRY_SECONDS = 10

/** The page for a caller that may not or cannot open the artifact. */
export function renderStatusPageFailure(failure: ServiceError): Page {
  const { status, details } = failure
  const isPassing = status === 429 || status >= 500
  const [heading, says] = failures[status] ?? failures[isPassing ? 500 : 400] ?? ['', '']
  const seconds = isPassing ? Math.max(RETRY_SECONDS, details.retryAfterSeconds ?? 0) : undefined
  return renderPage({
    state: 'failed',
    isFollowed: isPassing,
    refreshSeconds: seconds,
    title: heading,
    heading: html`${heading}`,
    says,
    facts: [],
  })
}

const failures: Readonly<Record<number, readonly [heading: string, says: string]>> = {
  400: ['This address is not complete', 'It does not say what to show. Check that it was copied as a whole.'],
  401: [
    'This address is not valid',
    'It has expired, was withdrawn, or was not copied as a whole. Ask whoever gave it to you for a new one.',
  ],
  403: ['This address is for something else', 'Ask whoever gave it to you for the right one.'],
  429: ['Too many at once', 'Too many pages ask from where you are. This one tries again by itself.'],
  500: ['Something went wrong', 'It is not your doing. This page tries again by itself.'],
}

export function renderPage(pieces: Pieces): Page {
  const { script, style, icon } = statusPageFiles
  const { refreshSeconds, title, state, isFollowed, heading, progress, content, facts } = pieces
  const refresh = html`<noscript><meta http-equiv="refresh" content="${refreshSeconds}"></noscript>`
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="../${icon.name}" type="image/svg+xml">
<link rel="stylesheet" href="../${style.name}">
<script type="module" src="../${script.name}"></script>
${refreshSeconds === undefined ? undefined : refresh}
</head>
<body>
<main data-state="${state}" data-followed="${isFollowed ? 'yes' : 'no'}">
<h1 data-piece="heading">${heading}</h1>
<p data-piece="says" role="status">${pieces.says}</p>
<div data-piece="progress">${progress}</div>
<div data-piece="content">${content}</div>
<div data-piece="facts">${facts}</div>
<p id="away" role="alert" hidden>The server cannot be reached. This page tries again by itself.</p>
</main>
</body>
</html>
`
  return new Page(text)
}

interface StatusPageFile {
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
