/** What the upload endpoint needs of the rest of the service. */
import type { AppendDeps } from '../../artifacts/append.ts'
import type { AuditDeps } from '../../audit/audit.ts'
import type { Tracing } from '../../observability/tracing.ts'
import type { Dependencies as RestDependencies } from '../dependencies.ts'

export interface Dependencies extends RestDependencies, AppendDeps, AuditDeps {
  readonly tracing: Tracing | undefined
}
