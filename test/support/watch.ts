/** Opens artifacts' status pages and changes the artifacts' states. */

import type { Updateable } from 'kysely'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { ArtifactTable } from '../../src/db/tables.ts'
import type { TestApp } from './app.ts'
import { saveScreenshot } from './screenshots.ts'

/** A reserved artifact and its tokens. */
export interface Reserved {
  readonly artifact_id: string
  readonly upload_token: string
  readonly view_token: string
}

export async function reserveArtifact(app: TestApp, body: object = {}): Promise<Reserved> {
  const answer = await app.call('POST', '/v1/artifacts', { body })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}

export function statusPagePath({ artifact_id, view_token }: Reserved): string {
  return `/artifacts/${artifact_id}/watch?token=${view_token}`
}

export function readRow(app: TestApp, id: string) {
  const { db } = app.service.deps
  return db.selectFrom('artifacts').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

/** Updates an artifact's row and publishes the change. */
export async function setArtifact(
  app: TestApp,
  id: string,
  values: Updateable<ArtifactTable>,
): Promise<void> {
  const { db, artifacts } = app.service.deps
  await db.updateTable('artifacts').set(values).where('id', '=', id).execute()
  artifacts.changes.publish(id)
}

/** Marks an artifact as converted, so that the page displays it. */
export function setConverted(
  app: TestApp,
  id: string,
  mediaType: string,
  more: Updateable<ArtifactTable> = {},
) {
  const types = { media_type: mediaType, sniffed_type: mediaType }
  return setArtifact(app, id, { conversion_result: 'converted', conversion_reason: null, ...types, ...more })
}

export interface OpenedPage {
  readonly page: Page
  readonly complaints: string[]
}

/** Opens a page; `complaints` collects console messages, errors, referrers and requests to other origins. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width: 900, height: 700 }, ...options })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(`console: ${message.text()}`))
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) complaints.push(`request: ${request.url()}`)
    if (request.headers().referer) complaints.push(`referrer: ${request.headers().referer}`)
  })
  await page.goto(url)
  return { page, complaints }
}

/** Saves screenshots in both themes and on a phone, for manual review. */
export async function saveScreenshots(page: Page, name: string): Promise<void> {
  const viewport = page.viewportSize() ?? { width: 900, height: 700 }
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await saveScreenshot(page, `watch-${name}-${colorScheme}`)
  }
  await page.setViewportSize({ width: 390, height: 700 })
  await saveScreenshot(page, `watch-${name}-phone`)
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme: 'light' })
}

/** Returns how far the page overflows a phone screen horizontally, in pixels. */
export async function measureOverflow(page: Page): Promise<number> {
  const viewport = page.viewportSize() ?? { width: 900, height: 700 }
  await page.setViewportSize({ width: 390, height: 700 })
  const { scrollWidth } = await page.evaluate(() => ({ scrollWidth: document.documentElement.scrollWidth }))
  await page.setViewportSize(viewport)
  return Math.max(0, scrollWidth - 390)
}
