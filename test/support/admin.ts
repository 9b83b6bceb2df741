/** Starts services that have an administrator, and calls their administration API. */

import type { ServiceOptions } from '../../src/server/build.ts'
import { type Answer, type CallOptions, startApp, type TestApp } from './app.ts'
import { asUser, behindProxy } from './console.ts'

export const root = 'root@example.org'

/** Starts a service with `root` as its administrator. */
export function startAdminApp(
  env: Readonly<Record<string, string>> = {},
  options: Omit<ServiceOptions, 'config'> = {},
): Promise<TestApp> {
  return startApp({ ...behindProxy, PARLEY_ADMIN_EMAILS: root, ...env }, options)
}

/** Sends a request as the administrator; `path` is relative to `/v1/manager/admin`. */
export function asAdmin(
  app: TestApp,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  return app.call(method, `/v1/manager/admin${path}`, asUser(root, options))
}

/** Reads all pages of a list, with `limit` items on each page. */
export async function listInPages(app: TestApp, path: string, limit: number): Promise<{ id: string }[]> {
  const entries: { id: string }[] = []
  for (let hasMore = true; hasMore; ) {
    const after = entries.length === 0 ? '' : `&after=${entries.at(-1)?.id}`
    const { status, body, text } = await asAdmin(app, 'GET', `${path}?limit=${limit}${after}`)
    if (status !== 200 || body.data.length > limit) throw new Error(text)
    entries.push(...body.data)
    hasMore = body.has_more
  }
  return entries
}
