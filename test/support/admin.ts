/** Starts services with an administrator, and calls them as one. */

import type { ServiceOptions } from '../../src/server/build.ts'
import { type Answer, type CallOptions, startApp, type TestApp } from './app.ts'
import { as, proxied } from './console.ts'

export const root = 'root@example.org'

/** Starts a service in which `root` is the administrator. */
export function startAdminApp(
  env: Readonly<Record<string, string>> = {},
  options: Omit<ServiceOptions, 'config'> = {},
): Promise<TestApp> {
  return startApp({ ...proxied, PARLEY_ADMIN_EMAILS: root, ...env }, options)
}

/** Sends a call of the administrator to a path under `/v1/manager/admin`. */
export function asAdmin(
  app: TestApp,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  return app.call(method, `/v1/manager/admin${path}`, as(root, options))
}

/** Reads a whole list in pages of `limit` entries. */
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
