/** Checks the API's responses in all tests against the documented schemas. */
import { isAboutArtifacts } from '../../src/http/response.ts'
import { errorShapeOf } from '../../src/operations/errors.ts'
import { ArtifactError, ChatError, errorSchemas } from '../../src/operations/openapi.ts'
import { createRouteTable } from '../../src/operations/route-table.ts'
import { restOperations } from '../../src/server/api.ts'
import { readEvents } from './app.ts'

const routes = createRouteTable(restOperations)

/** Checks responses in the background; `settle` throws if one does not match its schema. */
export class AnswerChecker {
  private readonly checks: Promise<void>[] = []

  check(method: string, path: string, response: Response): void {
    if (path.startsWith('/v1') || isAboutArtifacts(path))
      this.checks.push(checkAnswer(method, path, response))
  }

  async settle(): Promise<void> {
    const failed = (await Promise.allSettled(this.checks)).find(({ status }) => status === 'rejected')
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
  }
}

async function checkAnswer(method: string, path: string, response: Response): Promise<void> {
  if (isAboutArtifacts(path) && response.headers.get('protocol-version') !== '2')
    throw new Error(`${path} was answered without Protocol-Version`)
  // Reading the body fails if the test has closed the connection.
  const text = await response.text().catch(() => '')
  if (text === '' || method === 'OPTIONS' || method === 'HEAD') return
  const mediaType = response.headers.get('content-type') ?? ''
  // Skips the status page's assets, which are not documented operations.
  if (/^\/artifacts\/watch-/.test(path)) return
  if (mediaType.startsWith('text/html')) {
    const { response: promised } = routes.match(method, path).operation
    if (promised?.page === undefined && !promised?.download)
      throw new Error(`${path} was answered with an HTML page`)
    return
  }
  if (response.status >= 400) {
    errorSchemas[errorShapeOf(path)].parse(JSON.parse(text))
    return
  }
  const { operation } = routes.match(method, path)
  if (operation.response?.download) return
  if (operation.response?.generated !== undefined) {
    if (mediaType !== operation.response.generated) throw new Error(`${path} was answered with ${mediaType}`)
    return
  }
  if (mediaType.startsWith('text/event-stream')) {
    const failure = isAboutArtifacts(path) ? ArtifactError : ChatError
    for (const event of readEvents(text).events)
      (event.error ? failure : operation.response?.events)?.parse(event)
  } else operation.output.parse(JSON.parse(text))
}
