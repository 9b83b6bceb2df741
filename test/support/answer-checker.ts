/** Holds every answer of the suite against the schema its operation promises. */

import { errorShapeOf } from '../../src/rest/errors.ts'
import { AgentError, ChatError } from '../../src/rest/openapi.ts'
import { createRouteTable, listRestOperations } from '../../src/rest/routes.ts'
import { readEvents } from './app.ts'

const routes = createRouteTable(listRestOperations())

/** Checks in the background; `settle` throws for the first answer that broke its promise. */
export class AnswerChecker {
  private readonly checks: Promise<void>[] = []

  check(method: string, path: string, response: Response): void {
    if (path.startsWith('/v1')) this.checks.push(checkAnswer(method, path, response))
  }

  async settle(): Promise<void> {
    const failed = (await Promise.allSettled(this.checks)).find(({ status }) => status === 'rejected')
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
  }
}

async function checkAnswer(method: string, path: string, response: Response): Promise<void> {
  // A test that leaves in the middle of an answer leaves nothing to check.
  const text = await response.text().catch(() => '')
  if (text === '' || method === 'OPTIONS' || method === 'HEAD') return
  const mediaType = response.headers.get('content-type') ?? ''
  if (response.status >= 400) {
    const schema = errorShapeOf(path) === 'agent' ? AgentError : ChatError
    schema.parse(JSON.parse(text))
    return
  }
  const { operation } = routes.match(method, path)
  if (operation.wire.download) return
  if (mediaType.startsWith('text/event-stream')) {
    for (const event of readEvents(text).events) (event.error ? ChatError : operation.wire.sse)?.parse(event)
  } else operation.output.parse(JSON.parse(text))
}
