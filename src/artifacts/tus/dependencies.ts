/** What the upload endpoint needs of the rest of the service. */

import type { AuditDeps } from '../../identity/audit.ts'
import type { Dependencies as RestDependencies } from '../../operations/dependencies.ts'
import type { Tracing } from '../../telemetry/tracing.ts'
import type { AppendDeps } from '../transfer/append.ts'

export interface Dependencies extends RestDependencies, AppendDeps, AuditDeps {
  readonly tracing: Tracing | undefined
}
