/** A connection to PostgreSQL that ends when pg cannot read what arrives, instead of ending the process. */
import { Socket } from 'node:net'

/** pg parses within the `data` event, where a message that is shorter than it says makes its parser throw. */
export class GuardedSocket extends Socket {
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'data') return super.emit(event, ...args)
    try {
      return super.emit(event, ...args)
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
      return true
    }
  }
}
