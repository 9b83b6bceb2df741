/** Defines the queries of the Prices page. */
import { queryOptions } from '@tanstack/react-query'
import { api } from '../api.ts'
import type { PricesSearch } from '../search.ts'

const PAGE_SIZE = 50

export const pricesQuery = ({ q, source, after }: PricesSearch) =>
  queryOptions({
    queryKey: ['prices', { q, source, after }],
    queryFn: () => api.prices.list.query({ limit: PAGE_SIZE, q, source, after }),
  })
