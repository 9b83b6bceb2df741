/** Renders the status page: the progress of an artifact, and a preview of the result. */
import { type Html, html } from '../../lib/html.ts'
import type { Page } from '../../operations/operation.ts'
import type { ArtifactStatus } from '../schema.ts'
import { renderPage } from './layout.ts'

export interface Preview {
  readonly as: 'video' | 'picture' | 'captions' | 'file'
  readonly sizeBytes: number
  readonly hasPoster: boolean
  readonly text?: string
}

interface StatusPageView {
  readonly status: ArtifactStatus
  /** The query of the page's own address, which every link to the artifact needs. */
  readonly query: string
  readonly preview?: Preview | undefined
}

const kinds = { video: 'Video', project: 'Project', captions: 'Captions', thumbnail: 'Picture' } as const
const stateLabels = {
  unknown: 'Nothing here yet',
  uploading: 'Uploading',
  processing: 'Preparing',
  ready: 'Ready',
} as const
const REFRESH_SECONDS = { unknown: 10, uploading: 3, processing: 3, ready: undefined } as const

/** Renders the page completely, so that it also works without JavaScript. */
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

/** The progress from 0 to 1; undefined if there is none or it is unknown. */
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

/** Leaves `outcome` out, because only the host's own pages can interpret it. */
function listFacts({ status: { state, kind, conversion, acknowledged }, preview }: StatusPageView): Html[] {
  if (state === 'unknown')
    return [
      fact(
        'Nothing has been uploaded to this address, or it is not there any more. This page goes on looking.',
      ),
    ]
  if (state === 'uploading')
    return [fact('It stays safe when the connection breaks, and goes on from there.')]
  const facts = []
  if (state === 'processing')
    facts.push(fact('All of it has arrived, and is being made ready to be looked at.'))
  if (conversion?.result === 'original' && kind !== 'project' && preview !== undefined)
    facts.push(fact('It is offered just as it was uploaded.'))
  if (conversion?.reason !== undefined) facts.push(fact(conversion.reason))
  facts.push(
    fact(
      acknowledged === true
        ? 'Whoever it was uploaded for has received it.'
        : 'Whoever it was uploaded for is being told.',
    ),
  )
  return facts
}

function fact(text: string): Html {
  return html`<p>${text}</p>
`
}

/** Decimal units: 1 kB is 1000 bytes. */
function toByteText(bytes: number): string {
  if (bytes === 1) return '1 byte'
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1)
  const digits = power === 0 ? 0 : 1
  return `${(bytes / 1000 ** power).toFixed(digits)} ${units[power]}`
}

/** A window title cannot isolate text of the other direction. */
function withoutDirections(text: string): string {
  return text.replace(/\p{Bidi_Control}/gu, '')
}
