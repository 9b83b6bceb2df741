/** Renders the status page, which shows an artifact's progress, a preview of the result, or an error. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { designHead } from '../../design/design.ts'
import type { ServiceError } from '../../lib/errors.ts'
import { Html, html } from '../../lib/html.ts'
import { Page } from '../../operations/operation.ts'
import type { ArtifactStatus } from '../schema.ts'

export interface Preview {
  readonly as: 'video' | 'picture' | 'captions' | 'file'
  readonly sizeBytes: number
  readonly hasPoster: boolean
  readonly text?: string
}

interface StatusPageView {
  readonly status: ArtifactStatus
  /** The query string of the page's URL. Links to the artifact must include it. */
  readonly query: string
  readonly preview?: Preview | undefined
}

const kinds = {
  video: 'Video',
  project: 'Project',
  captions: 'Captions',
  thumbnail: 'Picture',
  attachment: 'File',
} as const
const stateLabels = {
  unknown: 'Nothing here yet',
  uploading: 'Uploading',
  processing: 'Preparing',
  ready: 'Ready',
} as const
const REFRESH_SECONDS = { unknown: 10, uploading: 3, processing: 3, ready: undefined } as const

/** Renders the complete page, so that it works without JavaScript. */
export function renderStatusPage(view: StatusPageView): Page {
  const { status } = view
  const { state, kind, name } = status
  const label = name ?? (kind === undefined ? 'Upload' : kinds[kind])
  const share = shareOf(status)
  return renderPage({
    state,
    isFollowed: state !== 'ready' || status.acknowledged !== true,
    refreshSeconds: REFRESH_SECONDS[state],
    title: `${share === undefined ? stateLabels[state] : `${toPercent(share)} %`} · ${withoutDirections(label)}`,
    heading: html`<bdi>${label}</bdi>`,
    says: stateLabels[state],
    progress: renderProgress(status, share),
    content: view.preview && renderPreview(view.preview, view, label),
    facts: listFacts(view),
  })
}

function shareOf({ state, progress, bytesReceived = 0, size }: ArtifactStatus): number | undefined {
  if (state === 'processing') return progress
  if (state !== 'uploading' || size === undefined) return undefined
  return size === 0 ? 1 : bytesReceived / size
}

function toPercent(share: number): number {
  return Math.floor(share * 100)
}

function renderProgress(status: ArtifactStatus, share: number | undefined): Html | undefined {
  const { state, size, bytesReceived = 0 } = status
  if (state !== 'uploading' && state !== 'processing') return undefined
  if (share === undefined)
    return html`<progress max="1" aria-label="${stateLabels[state]}"></progress>
<p class="figures">${toByteText(bytesReceived)} so far</p>`
  const total = state === 'uploading' && size !== undefined ? ` of ${toByteText(size)}` : ''
  return html`<progress max="1" value="${share}" aria-label="${stateLabels[state]}"></progress>
<p class="figures"><span id="percent">${toPercent(share)}</span> %${total}</p>`
}

function renderPreview(preview: Preview, { status, query }: StatusPageView, label: string): Html {
  const address = `../${status.artifactId}${query}`
  const size = toByteText(preview.sizeBytes)
  const link = html`<p><a class="download" href="${address}" download>Download</a> <span class="figures">${size}</span></p>`
  if (preview.as === 'file') return link
  return html`${renderMedia(preview, address, query, label)}
${link}`
}

function renderMedia({ as, text, hasPoster }: Preview, address: string, query: string, label: string): Html {
  if (as === 'captions')
    return html`<pre role="region" tabindex="0" aria-label="Captions" dir="auto">${text}</pre>`
  if (as === 'picture') return html`<img src="${address}" alt="${label}">`
  const poster = hasPoster ? html` poster="poster${query}"` : undefined
  return html`<video controls playsinline preload="metadata" aria-label="${label}" src="${address}"${poster}></video>`
}

/** Omits `outcome`, because only the application that recorded it can interpret it. */
function listFacts({ status, preview }: StatusPageView): string[] {
  const { state, kind, conversion, acknowledged } = status
  if (state === 'unknown')
    return ['Nothing has been uploaded yet, or the upload was deleted. This page updates automatically.']
  if (state === 'uploading') return ['If the connection is lost, the upload can be resumed.']
  const facts = []
  if (state === 'processing') facts.push('The upload is complete. The preview is being prepared.')
  if (conversion?.result === 'original' && kind !== 'project' && preview !== undefined)
    facts.push('The file is available as uploaded.')
  if (conversion?.reason !== undefined) facts.push(conversion.reason)
  if (acknowledged === true) facts.push('The recipient has received the upload.')
  else facts.push('The recipient is being notified.')
  return facts
}

/** Uses decimal units: 1 kB is 1000 bytes. */
function toByteText(bytes: number): string {
  if (bytes === 1) return '1 byte'
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1)
  const digits = power === 0 ? 0 : 1
  return `${(bytes / 1000 ** power).toFixed(digits)} ${units[power]}`
}

/** Removes bidirectional control characters, because a window title cannot isolate them. */
function withoutDirections(text: string): string {
  return text.replace(/\p{Bidi_Control}/gu, '')
}

/** The parts of the page that depend on the artifact's status. */
interface Pieces {
  readonly state: string
  readonly isFollowed: boolean
  /** Seconds until a browser without JavaScript reloads the page. */
  readonly refreshSeconds: number | undefined
  readonly title: string
  readonly heading: Html
  readonly says: string
  readonly progress?: Html | undefined
  readonly content?: Html | undefined
  readonly facts: readonly string[]
}

const RETRY_SECONDS = 10

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
  400: ['Incomplete link', 'The link is missing some information. Check that you copied all of it.'],
  401: [
    'Invalid link',
    'The link has expired, was revoked, or was not copied completely. Ask the sender for a new link.',
  ],
  403: ['Wrong link', 'This link is not valid for this page. Ask the sender for the right link.'],
  429: ['Too many requests', 'Your network has sent too many requests. This page retries automatically.'],
  500: ['Something went wrong', 'This is a problem on the server. This page retries automatically.'],
}

function renderPage(pieces: Pieces): Page {
  const { script, style } = statusPageFiles
  const { refreshSeconds, title, state, isFollowed, heading, progress, content } = pieces
  const facts = pieces.facts.map((fact) => html`<p>${fact}</p>\n`)
  const refresh = html`<noscript><meta http-equiv="refresh" content="${refreshSeconds}"></noscript>`
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
${new Html(designHead)}
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
<p id="away" role="alert" hidden>The server cannot be reached. This page retries automatically.</p>
</main>
</body>
</html>
`
  return new Page(text)
}

export const statusPageFiles = {
  script: readStatusPageFile('status.js', 'text/javascript'),
  style: readStatusPageFile('status.css', 'text/css'),
} as const

function readStatusPageFile(source: string, mediaType: string) {
  const text = readFileSync(new URL(source, import.meta.url), 'utf8')
  const [stem, extension] = source.split('.')
  return { name: `${stem}-${hash('sha256', text, 'hex').slice(0, 16)}.${extension}`, mediaType, text }
}
