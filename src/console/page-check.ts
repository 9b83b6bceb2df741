/** Checks whether browsers can show a page in a frame of the console. */
import { EgressClient, type EgressResponse, type EgressTarget, findUrlProblem } from '../http/egress.ts'
import { findFramingRefusal } from '../http/framing.ts'
import { ADDRESS_NOT_PUBLIC } from '../lib/net.ts'
import type { CheckedPage } from './schema.ts'

/** Timeout for each response of a redirect chain, in milliseconds. */
const TIMEOUT_MS = 10_000
const MAX_REDIRECTS = 5
const MAX_RULE = 300

const redirects = new Set([301, 302, 303, 307, 308])

interface Check {
  readonly url: string
  /** The origin of the page that contains the frame. */
  readonly parentOrigin: string
  readonly allow: readonly EgressTarget[]
}

const unchecked: CheckedPage = { outcome: 'unchecked', rule: null, status: null }
const unreachable: CheckedPage = { outcome: 'unreachable', rule: null, status: null }

/**
 * Requests a page, follows its redirects and checks whether its headers allow the frame. Returns `unchecked`
 * for a page that the server must not request, such as one in a private network.
 */
export async function checkPageFraming({ url, parentOrigin, allow }: Check): Promise<CheckedPage> {
  const client = new EgressClient({ allow })
  try {
    let page = new URL(url)
    for (let redirect = 0; redirect <= MAX_REDIRECTS; redirect++) {
      // The server never receives a fragment.
      page.hash = ''
      if (findUrlProblem(page.href, allow) !== undefined) return unchecked
      const response = await request(client, page)
      const next = findRedirect(response, page)
      if (next === undefined) return judge(response, page, parentOrigin)
      page = next
    }
    return unreachable
  } catch (thrown) {
    return (thrown as { code?: unknown }).code === ADDRESS_NOT_PUBLIC ? unchecked : unreachable
  } finally {
    await client.close()
  }
}

/** Sends GET and reads only the headers, because many servers answer HEAD with different headers. */
function request(client: EgressClient, page: URL): Promise<EgressResponse> {
  const headers = { accept: 'text/html', 'user-agent': 'Parley-Page-Check' }
  return client.send(page.href, { method: 'GET', headers, timeoutMs: TIMEOUT_MS, maxBytes: 0 })
}

function findRedirect({ status, headers }: EgressResponse, page: URL): URL | undefined {
  const location = [headers.location ?? []].flat()[0]
  const isRedirect = redirects.has(status) && location !== undefined && URL.canParse(location, page.href)
  return isRedirect ? new URL(location, page) : undefined
}

function judge({ status, headers }: EgressResponse, page: URL, parentOrigin: string): CheckedPage {
  const rule = findFramingRefusal(headers, { page, parentOrigin })
  if (rule !== undefined) return { outcome: 'refused', rule: rule.slice(0, MAX_RULE), status }
  return { outcome: status >= 400 ? 'failed' : 'shown', rule: null, status }
}
