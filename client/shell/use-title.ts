/** The title of the page in the browser's tab. */
import { useEffect } from 'react'

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Parley`
  }, [title])
}
