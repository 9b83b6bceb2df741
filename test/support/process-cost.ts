/** Measures the CPU time and memory of a Linux process. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** Returns the CPU nanoseconds that all threads of a process have used. */
export function readCpuNs(pid: number): number {
  // schedstat counts nanoseconds per thread; /proc/<pid>/stat counts only ticks of 10 ms.
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
    .reduce((total, text) => total + Number.parseInt(text, 10), 0)
}

/** Returns the CPU nanoseconds that the main thread of a process has used. */
export function readMainCpuNs(pid: number): number {
  return Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8'), 10)
}

/** Returns the resident memory of a process, or its peak, in KB. */
export function readMemoryKb(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1])
}

/** Sets the peak of a process's resident memory to its current value. */
export function resetPeakMemory(pid: number): void {
  // Writing 5 resets the peak value (proc(5)).
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

export interface Cost {
  readonly cpuMs: number
  /** Difference between the peak and the initial resident memory, in MB. */
  readonly memoryMb: number
}

/** Measures the CPU time and memory that a process uses while `act` runs. */
export async function measureCost(pid: number, act: () => Promise<unknown>): Promise<Cost> {
  resetPeakMemory(pid)
  const beforeKb = readMemoryKb(pid, 'VmRSS')
  const beforeNs = readCpuNs(pid)
  await act()
  const cpuMs = (readCpuNs(pid) - beforeNs) / 1e6
  return { cpuMs, memoryMb: (readMemoryKb(pid, 'VmHWM') - beforeKb) / 1024 }
}
