/** What this module needs of the rest of the service. */
export type { Dependencies } from '../rpc/dependencies.ts'
