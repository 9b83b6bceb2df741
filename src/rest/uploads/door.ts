/** The upload door: real upload clients come in here. Protocol: tus 1.0.0, core and the extensions of `headers.ts`. */
import type { ArtifactCaller } from '../../artifacts/access.ts'
import { ServiceError, toServiceError } from '../../errors.ts'
import { type Admission, authorize } from '../../rpc/authorize.ts'
import { CallsUnderWay, HttpCall } from '../call.ts'
import type { Door } from '../door.ts'
import type { Dependencies } from './dependencies.ts'
import { assertVersion, BODY_TYPE, PROTOCOL_VERSION } from './headers.ts'
import {
  answerDelete,
  answerHead,
  answerOptions,
  answerPatch,
  answerPost,
  type UploadCall,
} from './methods.ts'

interface Method {
  /** What the metrics call it. */
  readonly name: string
  readonly answer: (call: UploadCall, segment: string) => Promise<void>
}

/** What can be done at `/upload`, and what at the address of one upload. There is no GET: bytes are served elsewhere (R1, R3). */
const creationMethods: Readonly<Record<string, Method>> = {
  POST: { name: 'uploads.create', answer: answerPost },
}
const uploadMethods: Readonly<Record<string, Method>> = {
  HEAD: { name: 'uploads.get', answer: answerHead },
  PATCH: { name: 'uploads.append', answer: answerPatch },
  DELETE: { name: 'uploads.delete', answer: answerDelete },
}

/** Decision: 9 (Who may upload). */
const admission: Admission = {
  callers: ['parent', 'token'],
  errors: 'artifact',
  isUncounted: true,
  pageBody: BODY_TYPE,
}

export function createUploadDoor(deps: Dependencies): Door {
  const underWay = new CallsUnderWay()

  async function answer(call: UploadCall): Promise<void> {
    call.assertShortTarget()
    // "[The header] MUST be included in every request and response except for OPTIONS requests."
    call.context.setHeader('Tus-Resumable', PROTOCOL_VERSION)
    const { methods, segment } = findUploadPath(call.path)
    const name = methodOf(call)
    if (name === 'OPTIONS') return answerOptions(call)
    const method = Object.hasOwn(methods, name) ? methods[name] : undefined
    if (method === undefined) throw refuseMethod(name, methods)
    call.context.arrival.watch.found(method.name, segment === '' ? '/upload' : '/upload/{segment}')
    assertVersionOrTell(call)
    await authorize(call.context, admission)
    return method.answer(call, segment)
  }

  return {
    answer(request, response, arrival) {
      const path = (request.url ?? '/').split('?', 1)[0] as string
      if (!/^\/upload(\/|$)/.test(path)) return false
      const call = new HttpCall<ArtifactCaller, Dependencies>(
        deps,
        request,
        response,
        arrival,
        path,
        underWay,
      )
      answer(call).catch((thrown) => call.writeFailure(toServiceError(thrown)))
      return true
    },
    endStreams: () => underWay.endAll(),
  }
}

/** Clients are often given the address with a slash behind it. */
function findUploadPath(path: string): { methods: Readonly<Record<string, Method>>; segment: string } {
  const [, segment] = /^\/upload(?:\/([0-9A-Za-z]{0,64}))?$/.exec(path) ?? []
  if (segment) return { methods: uploadMethods, segment }
  if (path === '/upload' || path === '/upload/') return { methods: creationMethods, segment: '' }
  throw new ServiceError('not_found', `There is nothing at ${path}.`)
}

/** "The actual method of the request MUST be ignored" where the header names another. */
function methodOf({ request }: UploadCall): string {
  const sent = request.headers['x-http-method-override']
  return typeof sent === 'string' ? sent.toUpperCase() : (request.method as string)
}

function assertVersionOrTell({ request, context }: UploadCall): void {
  try {
    assertVersion(request.headers)
  } catch (failure) {
    context.setHeader('Tus-Version', PROTOCOL_VERSION)
    throw failure
  }
}

function refuseMethod(name: string, methods: Readonly<Record<string, Method>>): ServiceError {
  const allow = [...Object.keys(methods), 'OPTIONS']
  return new ServiceError('method_not_allowed', `${name} is not possible here, only ${allow.join(', ')}.`, {
    allow,
  })
}
